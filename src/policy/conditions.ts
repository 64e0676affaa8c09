import type { Config } from '../config/schema.ts'
import type { Entry } from '../core/entry.ts'
import { createApprovals } from './approvals.ts'
import type { Consideration } from './explanation.ts'
import { compileLimits } from './limits/compile.ts'

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
