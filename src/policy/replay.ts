import type { AuditEnd } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Decision } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { defaultAgent } from './agents.ts'
import type { Policy } from './decide.ts'
import { isPolicyReason } from './verdict.ts'

/** What audit says of an operation that is over. */
export type PastCall = Pick<
  AuditEnd,
  'agent' | 'anonymous' | 'kind' | 'server' | 'tool' | 'write' | 'decision' | 'reason' | 'rule'
> & {
  readonly time: string
}

/** One agent and one thing that would now be decided otherwise. */
export interface Change {
  readonly agent: string
  readonly server: string
  readonly tool: string
  readonly calls: number
  /** When it was last tried. */
  readonly last: string
  /** The rules that decided then and now; none where the record names none. */
  readonly before: string | undefined
  readonly after: string
  /** What whoever is refused would be told. */
  readonly reason?: string
}

/** What a proposed policy would have made of recorded calls. */
export interface Replayed {
  /** How many calls there were to decide about again. */
  readonly calls: number
  readonly denied: readonly Change[]
  readonly allowed: readonly Change[]
}

export interface Replay {
  add(past: PastCall): void
  result(): Replayed
}

/**
 * Decides about recorded calls again, by another policy (B12). What was refused for other reasons than policy, by a
 * limit or a guard, had been allowed by policy.
 */
export function createReplay(policy: Pick<Policy, 'decide' | 'agents' | 'agentOf'>): Replay {
  const denied = new Map<string, Change>()
  const allowed = new Map<string, Change>()
  let calls = 0

  return {
    add(past) {
      const { server, tool, rule: before, time } = past
      // What was not found never came before policy.
      if (server === undefined || tool === undefined || (past.decision === 'ERROR' && notFound(past.reason))) return
      calls++
      const agent = agentNow(past.agent)
      const decision = policy.decide(callerOf(agent, past), entryOf(past, server, tool))
      if (decision.allowed === wasAllowed(past)) return
      const changes = decision.allowed ? allowed : denied
      const key = JSON.stringify([agent, server, tool, before, decision.rule])
      const known = changes.get(key)
      const last = known && known.last > time ? known.last : time
      changes.set(key, { agent, server, tool, calls: (known?.calls ?? 0) + 1, last, before, ...outcomeOf(decision) })
    },
    result: () => ({ calls, denied: sorted(denied.values()), allowed: sorted(allowed.values()) }),
  }

  /** Where there were no agents everybody was `default`; whoever they would be now is decided anew. */
  function agentNow(agent: string): string {
    if (agent !== defaultAgent || policy.agents.has(agent)) return agent
    return policy.agentOf({ agents: '*' }, undefined)
  }
}

const outcomeOf = (decision: Decision) =>
  decision.allowed ? { after: decision.rule } : { after: decision.rule, reason: decision.reason }

const wasAllowed = ({ decision, reason }: PastCall): boolean => decision !== 'DENY' || !isPolicyReason(reason)

const notFound = (reason: string | undefined): boolean => reason === 'tool_not_found' || reason === 'server_not_found'

const callerOf = (agent: string, { anonymous }: PastCall): Caller => ({
  agent,
  agents: '*',
  principal: 'replay',
  authenticated: anonymous !== true,
  admin: false,
  session: 'replay',
  capabilities: {},
})

const entryOf = ({ kind = 'tool', write }: PastCall, server: string, name: string): Entry => ({
  kind,
  server,
  name,
  definition: {},
  traits: { readOnly: !write, idempotent: !write, timeoutMs: 0 },
  run: () => Promise.reject(new Error('recorded calls are not made again')),
})

const sorted = (changes: Iterable<Change>): Change[] => [...changes].sort((a, b) => b.calls - a.calls)
