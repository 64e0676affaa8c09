import type { Denial, Permission } from '../core/decision.ts'
import type { ErrorCode } from '../core/errors.ts'

const ruleReasons = [
  'server_not_allowed',
  'tool_not_allowed',
  'tool_blocked',
  'auth_required',
  'agent_not_in_rules',
] as const

/** What audit calls the reason of a denial by rules (F11): one word per cause, never a sentence. */
export type AuditReason = (typeof ruleReasons)[number]

const policyReasons: ReadonlySet<string> = new Set([
  ...ruleReasons,
  ...(['WRITE_NOT_ALLOWED', 'NO_FALLBACK_CONFIGURED', 'FALLBACK_AGENT_NOT_IN_RULES'] as const).map(auditReasonOf),
])

/** Whether a recorded denial was one of policy, and not of a limit, a guard or a pin. */
export const isPolicyReason = (reason: string | undefined): boolean => reason !== undefined && policyReasons.has(reason)

/** A denial that also has a word for audit. */
export interface RuledDenial extends Denial {
  readonly auditReason?: AuditReason
}

/** A decision that always names its rule. */
export type PolicyVerdict = Permission | RuledDenial

/** What the rules are asked: may this agent use that thing? */
export interface PolicyQuery {
  readonly agent: string
  readonly server: string
  /** The entry's own name: of a tool or prompt, or a URI. */
  readonly name: string
  /** Rules for tools are about tools alone; everything else goes by the rules for servers. */
  readonly isTool: boolean
  readonly authenticated: boolean
}

/** A denial before it is put in words: one object per rule, shared by everything that it denies. */
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

/** The ruling as an answer to one question. */
export function verdictOf(ruling: Ruling, question: PolicyQuery): PolicyVerdict {
  if (ruling.allowed) return ruling
  const { code, rule, auditReason } = ruling
  return { allowed: false, code, rule, reason: ruling.sentence(question, rule), auditReason }
}

/** Audit's word for a failure that no rule made, such as `server_not_found`. */
export function auditReasonOf(code: ErrorCode): string {
  return code.toLowerCase()
}
