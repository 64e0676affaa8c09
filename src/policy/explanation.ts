import type { Config } from '../config/schema.ts'
import type { Decision } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { createApprovals } from './approvals.ts'
import { compileLimits } from './limits.ts'

/** The steps of a decision, in their order. */
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

/** One thing that was looked at on the way to a decision. */
export interface Consideration {
  readonly step: ExplanationStep
  /** The rule that matched, or the part of the configuration where none did. */
  readonly rule: string
  /** `passes`: it does not decide, the next one is asked. An agent with parents needs an `allows` of each. */
  readonly outcome: 'allows' | 'denies' | 'passes'
  /** What was found, in a few words. */
  readonly note: string
}

/** A decision together with the way to it. */
export interface Explanation {
  readonly decision: Decision
  readonly rule: string
  /** Whether there is such a server: rules with a star decide about others too. */
  readonly serverExists: boolean
  /** Everything considered, in order. A denial is the last one; what is allowed may still meet limits and a person. */
  readonly considered: readonly Consideration[]
}

/** A decision with all that led to it. */
export interface Why extends Explanation {
  readonly agent: string
  readonly server: string
  readonly tool: string
}

/** What a call still meets once policy has allowed it, in this order: limits, and a person's yes. */
export function conditionsOf(
  config: Pick<Config, 'agents' | 'limits' | 'mcpServers'>,
  agent: string,
  entry: Entry,
): Consideration[] {
  const limits = compileLimits(config)(agent, entry).map(({ rule, perMinute, scope }) => ({
    step: 'limit' as const,
    rule,
    outcome: 'passes' as const,
    note: `${perMinute} ${perMinute === 1 ? 'call' : 'calls'} a minute${scope}`,
  }))
  const approval = createApprovals(config.mcpServers)(entry)
  if (approval === undefined) return limits
  const note = 'a person is asked first; refused where nobody can be'
  return [...limits, { step: 'approval', rule: approval, outcome: 'passes', note }]
}
