import type { Config } from '../config/schema.ts'
import type { Decision, Denial, Permission } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import type { ErrorCode } from '../core/errors.ts'
import { durationText } from '../lib/duration.ts'
import { createApprovalRules } from './approvals.ts'
import { compileLimits } from './limits.ts'

/** The steps of a decision, in order of evaluation. */
export type ExplanationStep =
  | 'blocked tools'
  | 'allowed servers'
  | 'allowed tools'
  | 'authentication'
  | 'agent'
  | 'explicit deny'
  | 'wildcard deny'
  | 'explicit allow'
  | 'wildcard allow'
  | 'implicit grant'
  | 'default deny'
  | 'read-only server'
  | 'read-only agent'
  | 'pins'
  | 'limit'
  | 'approval'

export interface Consideration {
  readonly step: ExplanationStep
  /** The matching rule, or the part of the configuration that has no matching rule. */
  readonly rule: string
  /** `passes`: this step does not decide. `allows`: if the agent has parents, each of them must allow the call too. */
  readonly outcome: 'allows' | 'denies' | 'passes'
  readonly note: string
}

export interface Explanation {
  readonly decision: Decision
  readonly rule: string
  /** Whether the server exists. Wildcard rules also apply to servers that do not exist. */
  readonly serverExists: boolean
  /** What was considered, in order. A denial is always last; limits and approval may follow a permission. */
  readonly considered: readonly Consideration[]
}

export interface Why extends Explanation {
  readonly agent: string
  readonly server: string
  readonly tool: string
  /** The tool's name for callers, if the operator has changed it. */
  readonly served?: string | undefined
}

/** The conditions that still apply to an allowed call, in this order: limits, then approval by a person. */
export function conditionsOf(
  config: Pick<Config, 'agents' | 'approvals' | 'limits' | 'mcpServers'>,
  agent: string,
  entry: Entry,
): Consideration[] {
  const limits = compileLimits(config)({ agent, principal: '' }, entry).map(
    ({ rule, perMinute, scope, perClient }) => ({
      step: 'limit' as const,
      rule,
      outcome: 'passes' as const,
      note: `${perMinute} ${perMinute === 1 ? 'call' : 'calls'} per minute${scope}${perClient ? ', for each client' : ''}`,
    }),
  )
  const need = createApprovalRules(config).need(entry, agent)
  if (need === undefined) return limits
  const people = [...new Set(need.by.flat())].join(', ')
  const note = `a person must approve the call within ${durationText(config.approvals.wait)} (${people})`
  return [...limits, { step: 'approval', rule: need.rule, outcome: 'passes', note }]
}

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

export const permitBy = (rule: string): Permission => ({ allowed: true, rule })

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
