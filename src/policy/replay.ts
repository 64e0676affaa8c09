import type { Config, ServerConfig } from '../config/schema.ts'
import type { AuditEnd } from '../core/audit.ts'
import type { Caller } from '../core/call.ts'
import type { Decision } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { builtInSources, metaSource } from '../core/source.ts'
import { toolOverrides } from '../core/tool-overrides.ts'
import { setBounded } from '../lib/memoize.ts'
import { matches } from '../lib/wildcard.ts'
import { defaultAgent } from './agents.ts'
import type { Policy } from './decide.ts'
import { isPolicyReason } from './explanation.ts'

export type PastCall = Pick<
  AuditEnd,
  'agent' | 'anonymous' | 'kind' | 'server' | 'tool' | 'write' | 'decision' | 'reason' | 'rule'
> & {
  readonly time: string
  readonly call?: string
  readonly parent?: string | undefined
}

/** An agent and an entry for which the decision differs from the recorded one. */
export interface PolicyChange {
  readonly agent: string
  readonly server: string
  readonly tool: string
  readonly calls: number
  readonly last: string
  /** The deciding rules, in the record and now. `before` is undefined if the record names no rule. */
  readonly before: string | undefined
  readonly after: string
  readonly reason?: string
  /** The ids of the latest of these calls, newest first. */
  readonly examples: readonly string[]
}

/** The effect of a proposed policy on recorded calls. */
export interface Replayed {
  readonly calls: number
  readonly denied: readonly PolicyChange[]
  readonly allowed: readonly PolicyChange[]
  /** Calls to entries that would no longer exist. Policy would not be evaluated for them. */
  readonly gone: readonly PolicyChange[]
}

export interface ReplayOptions {
  readonly policy: Pick<Policy, 'decide' | 'agents' | 'agentOf'>
  readonly servers: Config['mcpServers']
  /** Whether `servers` are part of the proposal. If not, no entry counts as gone. */
  readonly serversProposed: boolean
}

/**
 * Decides recorded calls again under another policy (B12). A call that a limit or a guard refused counts as allowed
 * before, because policy had allowed it. A call that a pin refused never counts as a change, because definitions are
 * approved separately.
 */
export function createReplay({ policy, servers, serversProposed }: ReplayOptions) {
  // Use a map: a lookup in the object itself would find `constructor`.
  const proposed = new Map(Object.entries(servers))
  const denied = new Map<string, PolicyChange>()
  const allowed = new Map<string, PolicyChange>()
  const gone = new Map<string, PolicyChange>()
  /** Calls that have made inner calls and have not ended yet. */
  const carriers = new Map<string, true>()
  let calls = 0

  return {
    add(past: PastCall): void {
      const { server, tool, time, call, parent } = past
      if (parent !== undefined) setBounded(carriers, parent, true, maxCarriers)
      const hasCarried = call !== undefined && carriers.delete(call)
      const allowedBefore = hasCarried || wasAllowed(past)
      if (server === undefined || tool === undefined || (past.decision === 'ERROR' && failedBeforePolicy(past.reason)))
        return
      calls++
      if (past.reason === 'quarantined') return
      const agent = agentNow(past.agent)
      const examples = call === undefined ? [] : [call]
      const change = { agent, server, tool, last: time, before: past.rule, examples }
      const missing = serversProposed ? missingBy(proposed, past, server, tool) : undefined
      if (missing !== undefined) {
        if (allowedBefore) countChange(gone, { ...change, after: missing })
        return
      }
      const decision = policy.decide(replayCaller(agent, past), entryOf(past, server, tool))
      if (decision.allowed === allowedBefore) return
      countChange(decision.allowed ? allowed : denied, { ...change, ...changeOutcome(decision) })
    },
    result: (): Replayed => ({
      calls,
      denied: sortByCalls(denied.values()),
      allowed: sortByCalls(allowed.values()),
      gone: sortByCalls(gone.values()),
    }),
  }

  /** The agent that a recorded caller would have now. If there were no agents, it was recorded as `default`. */
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
      run: () => Promise.reject(new Error('recorded calls cannot be run')),
    }
  }
}

const maxExamples = 5
/** Above any number of meta-tool calls that run at once. */
const maxCarriers = 10_000

function countChange(changes: Map<string, PolicyChange>, change: Omit<PolicyChange, 'calls'>): void {
  const { agent, server, tool, before, after } = change
  const key = JSON.stringify([agent, server, tool, before, after])
  const known = changes.get(key)
  // Records are read one log after the other, so an older call may come after a newer one.
  const isNewer = known === undefined || known.last <= change.last
  const last = isNewer ? change.last : known.last
  const examples = isNewer ? [...change.examples, ...(known?.examples ?? [])].slice(0, maxExamples) : known.examples
  changes.set(key, { ...change, last, examples, calls: (known?.calls ?? 0) + 1 })
}

/** The path in the configuration that causes the entry to be missing. Undefined if the entry may exist. */
function missingBy(
  servers: ReadonlyMap<string, ServerConfig>,
  { kind = 'tool' }: PastCall,
  server: string,
  tool: string,
): string | undefined {
  if (builtInSources.includes(server)) return undefined
  const config = servers.get(server)
  const path = `mcpServers.${server}`
  if (config === undefined) return path
  if (config.disabled) return `${path}.disabled`
  // `include` and `exclude` apply to tools only.
  if (kind !== 'tool') return undefined
  const { include, exclude } = config.tools
  if (!matchesAny(include, tool)) return `${path}.tools.include`
  const index = exclude.findIndex((pattern) => matches(pattern, tool))
  return index < 0 ? undefined : `${path}.tools.exclude[${index}]`
}

/**
 * Whether the entry would count as a read, by the rules of `upstream/listing/definitions.ts`. The server's annotations
 * are not recorded; where they would be trusted, the recorded classification is used instead.
 */
function isRead({ kind = 'tool', write }: PastCall, name: string, config: ServerConfig | undefined): boolean {
  if (kind !== 'tool') return true
  if (config === undefined) return !write
  const { readOnlyHint } = toolOverrides(config.tools).get(name)?.annotations ?? {}
  return readOnlyHint ?? (matchesAny(config.readTools, name) || (config.trustAnnotations && !write))
}

const matchesAny = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => matches(pattern, name))

const changeOutcome = (decision: Decision) =>
  decision.allowed ? { after: decision.rule } : { after: decision.rule, reason: decision.reason }

/**
 * Whether policy allowed the entry. A meta-tool may also have been refused for lack of an agent, which it accepts as an
 * argument, or because its inner call was refused; a call with inner calls was itself allowed.
 */
const wasAllowed = ({ decision, reason = '', server }: PastCall): boolean =>
  decision !== 'DENY' || !isPolicyReason(reason) || (server === metaSource && lacksAgent.has(reason))

const lacksAgent: ReadonlySet<string> = new Set(['no_fallback_configured', 'fallback_agent_not_in_rules'])

/** Whether a call failed before policy was evaluated, because its entry was not found or its server is not ready. */
const failedBeforePolicy = (reason = ''): boolean =>
  ['tool_not_found', 'server_not_found', 'server_unhealthy', 'auth_required'].includes(reason)

const replayCaller = (agent: string, { anonymous }: PastCall): Caller => ({
  agent,
  agents: '*',
  principal: 'replay',
  authenticated: anonymous !== true,
  admin: false,
  session: 'replay',
  capabilities: {},
})

const sortByCalls = (changes: Iterable<PolicyChange>): PolicyChange[] => [...changes].sort((a, b) => b.calls - a.calls)
