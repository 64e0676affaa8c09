import type { Config } from '../config/schema.ts'
import type { Decision } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
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
