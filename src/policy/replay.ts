import type { Config, ServerConfig } from '../config/schema.ts'
import type { AuditEnd } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Decision } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { matches } from '../lib/wildcard.ts'
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
  /** What would not be found any more, and so never come before policy. */
  readonly gone: readonly Change[]
}

export interface ReplayOptions {
  readonly policy: Pick<Policy, 'decide' | 'agents' | 'agentOf'>
  /** The servers that the policy is about. */
  readonly servers: Config['mcpServers']
  /** Whether these are proposed too; otherwise what is missing among them says nothing about the proposal. */
  readonly serversProposed: boolean
}

export interface Replay {
  add(past: PastCall): void
  result(): Replayed
}

/**
 * Decides about recorded calls again, by another policy (B12). What was refused for other reasons than policy, by a
 * limit or a guard, had been allowed by policy. What a pin refused is never a change: it was not usable, and whether
 * it is now is for whoever approves definitions to say.
 */
export function createReplay({ policy, servers, serversProposed }: ReplayOptions): Replay {
  // Never look a server up in the object itself: it would find `constructor`.
  const proposed = new Map(Object.entries(servers))
  const denied = new Map<string, Change>()
  const allowed = new Map<string, Change>()
  const gone = new Map<string, Change>()
  let calls = 0

  return {
    add(past) {
      const { server, tool, time } = past
      // What was not found never came before policy.
      if (server === undefined || tool === undefined || (past.decision === 'ERROR' && notFound(past.reason))) return
      calls++
      if (past.reason === 'quarantined') return
      const agent = agentNow(past.agent)
      const change = { agent, server, tool, last: time, before: past.rule }
      const missing = serversProposed ? missingBy(proposed, past, server, tool) : undefined
      if (missing !== undefined) {
        if (wasAllowed(past)) count(gone, { ...change, after: missing })
        return
      }
      const decision = policy.decide(callerOf(agent, past), entryOf(past, server, tool))
      if (decision.allowed === wasAllowed(past)) return
      count(decision.allowed ? allowed : denied, { ...change, ...outcomeOf(decision) })
    },
    result: () => ({
      calls,
      denied: sorted(denied.values()),
      allowed: sorted(allowed.values()),
      gone: sorted(gone.values()),
    }),
  }

  /** Where there were no agents everybody was `default`; whoever they would be now is decided anew. */
  function agentNow(agent: string): string {
    if (agent !== defaultAgent || policy.agents.has(agent)) return agent
    return policy.agentOf({ agents: '*' }, undefined)
  }

  function entryOf(past: PastCall, server: string, name: string): Entry {
    const readOnly = isRead(past, name, proposed.get(server))
    return {
      kind: past.kind ?? 'tool',
      server,
      name,
      definition: {},
      traits: { readOnly, idempotent: readOnly, timeoutMs: 0 },
      run: () => Promise.reject(new Error('recorded calls are not made again')),
    }
  }
}

/** Counts one more call of the same kind. */
function count(changes: Map<string, Change>, change: Omit<Change, 'calls'>): void {
  const { agent, server, tool, before, after } = change
  const key = JSON.stringify([agent, server, tool, before, after])
  const known = changes.get(key)
  const last = known && known.last > change.last ? known.last : change.last
  changes.set(key, { ...change, last, calls: (known?.calls ?? 0) + 1 })
}

/** Names that stand for Toolway itself: no configuration of servers has them. */
const ours: ReadonlySet<string> = new Set(['native', 'toolway', 'sink'])

/** The line of the configuration by which there is no such thing; undefined where there may be. */
function missingBy(
  servers: ReadonlyMap<string, ServerConfig>,
  { kind = 'tool' }: PastCall,
  server: string,
  tool: string,
): string | undefined {
  if (ours.has(server)) return undefined
  const config = servers.get(server)
  const path = `mcpServers.${server}`
  if (config === undefined) return path
  if (config.disabled) return `${path}.disabled`
  // Only tools are picked.
  if (kind !== 'tool') return undefined
  const { include, exclude } = config.tools
  if (!listed(include, tool)) return `${path}.tools.include`
  const index = exclude.findIndex((pattern) => matches(pattern, tool))
  return index < 0 ? undefined : `${path}.tools.exclude[${index}]`
}

/**
 * Whether it would be known to be a read, as `upstream/listing/definitions.ts` has it. What the server said of the tool is not
 * recorded; where its word would be trusted, what it was taken for stands for it.
 */
function isRead({ kind = 'tool', write }: PastCall, name: string, config: ServerConfig | undefined): boolean {
  if (kind !== 'tool') return true
  if (config === undefined) return !write
  return listed(config.readTools, name) || (config.trustAnnotations && !write)
}

const listed = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => matches(pattern, name))

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

const sorted = (changes: Iterable<Change>): Change[] => [...changes].sort((a, b) => b.calls - a.calls)
