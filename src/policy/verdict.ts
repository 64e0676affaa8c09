import type { Denial, Permission } from '../core/decision.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Consideration, ExplanationStep } from './explanation.ts'

const ruleReasons = [
  'server_not_allowed',
  'tool_not_allowed',
  'tool_blocked',
  'auth_required',
  'agent_not_in_rules',
] as const

/** Why rules denied a call, for the audit record (F11): one word per cause, never a sentence. */
export type AuditReason = (typeof ruleReasons)[number]

const policyReasons: ReadonlySet<string> = new Set<AuditReason | Lowercase<ErrorCode>>([
  ...ruleReasons,
  'write_not_allowed',
  'no_fallback_configured',
  'fallback_agent_not_in_rules',
])

/** Whether a recorded denial came from the policy, as opposed to a limit, a guard or a pin. */
export const isPolicyReason = (reason: string | undefined): boolean => reason !== undefined && policyReasons.has(reason)

export interface RuledDenial extends Denial {
  readonly auditReason?: AuditReason
}

export type PolicyVerdict = Permission | RuledDenial

export interface PolicyQuery {
  readonly agent: string
  readonly server: string
  /** The entry's own name: the name of a tool or prompt, or a URI. */
  readonly name: string
  /** Whether the entry is a tool. Tool rules apply to tools only; for everything else, only server rules count. */
  readonly isTool: boolean
  readonly authenticated: boolean
}

/** A denial without its message. There is one object per rule, shared by everything that the rule denies. */
export interface PolicyRefusal {
  readonly allowed: false
  readonly code: ErrorCode
  readonly rule: string
  readonly auditReason: AuditReason
  readonly sentence: (question: PolicyQuery, rule: string) => string
}

export type Ruling = Permission | PolicyRefusal

export type { Permission }

export const permission = (rule: string): Permission => ({ allowed: true, rule })

/** Returns the ruling, and adds it to `considered` if the caller wants an explanation. */
export function decides<Decided extends Ruling>(
  ruling: Decided,
  step: ExplanationStep,
  note: string,
  considered: Consideration[] | undefined,
): Decided {
  considered?.push({ step, rule: ruling.rule, outcome: ruling.allowed ? 'allows' : 'denies', note })
  return ruling
}

export const passes = (step: ExplanationStep, rule: string, note = 'no rule matches') =>
  ({ step, rule, outcome: 'passes', note }) as const
