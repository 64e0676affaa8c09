import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { Entry } from '../../core/entry.ts'
import { matches } from '../../lib/wildcard.ts'
import type { NeedsApproval } from '../approve.ts'

/** How the results of one entry are kept. */
export interface Plan {
  /** Who answers, and what it was said to be: an answer of another server, or of another definition, is no answer. */
  readonly identity: string
  readonly ttlMs: number
  /** A longer result is not kept: it would take the place of many. */
  readonly maxBytes: number
  /** Kept only where the server says how long. */
  readonly hinted: boolean
  /** All agents and principals share what it answers. */
  readonly shared: boolean
  /** Principals that act as the same agent share what it answers. */
  readonly byAgent: boolean
  /** Whose connection answers: everybody's, one of the calling session, or one of the call alone. */
  readonly session: 'shared' | 'caller' | 'call'
  readonly learnt: Lessons
}

/** What the answers so far have shown; all of it only ever makes the cache more careful, but for the first. */
export interface Lessons {
  /** Whether those who ask for the same at the same time may have one answer. */
  joins: boolean
  /** Answers are kept apart by who asks: the server wants it, or each goes to it by a grant of its own. */
  private: boolean
  /** It has asked a caller something. */
  asks: boolean
}

/** How a call of this entry is treated: `writes` may change what others answer, and nothing is done for `undefined`. */
export type CacheRules = (entry: Entry) => Plan | 'writes' | undefined

/** No single result takes more than this part of the room. */
const largestPart = 16

/** Which results are kept, for one configuration; undefined where none are. */
export function cacheRules(
  config: Pick<Config, 'cache' | 'mcpServers' | 'naming'>,
  needsApproval: NeedsApproval,
): CacheRules | undefined {
  const { cache, mcpServers, naming } = config
  if (!cache.enabled) return undefined
  const known = new WeakMap<Entry, Plan | 'writes' | 'nothing'>()

  const planOf = (entry: Entry, hinted: boolean): Plan => {
    const { kind, server, name, definition } = entry
    // Results name resources as callers know them, so that how things are named is part of an answer.
    const made = [server, mcpServers[server] ?? null, naming, kind, name, definition]
    return {
      identity: hash('sha256', JSON.stringify(made), 'base64url'),
      ttlMs: cache.ttl,
      maxBytes: Math.floor(cache.maxBytes / largestPart),
      hinted,
      shared: kind === 'tool' && cache.shared.some((pattern) => matches(pattern, `${server}.${name}`)),
      // A server that must say how long also says for whom: without cacheScope: public it is for one principal.
      byAgent: cache.scope === 'agent' || hinted,
      session: mcpServers[server]?.session ?? 'shared',
      learnt: { joins: !hinted, private: isPersonal(mcpServers[server]), asks: false },
    }
  }

  const treat = (entry: Entry): Plan | 'writes' | 'nothing' => {
    const forwarded = mcpServers[entry.server] !== undefined
    if (entry.traits.carries || (!forwarded && entry.server !== 'native')) return 'nothing'
    if (entry.kind !== 'tool') return forwarded ? planOf(entry, true) : 'nothing'
    if (needsApproval(entry) === undefined) {
      const listed = cache.tools.some((pattern) => isListed(pattern, entry))
      // What is built in changes nothing, but not everything that changes nothing answers the same twice: the time.
      if (listed || (forwarded && entry.traits.readOnly)) return planOf(entry, false)
    }
    return forwarded && !entry.traits.readOnly ? 'writes' : 'nothing'
  }

  return (entry) => {
    let treatment = known.get(entry)
    if (treatment === undefined) {
      treatment = treat(entry)
      known.set(entry, treatment)
    }
    return treatment === 'nothing' ? undefined : treatment
  }
}

const isPersonal = (server: Config['mcpServers'][string] | undefined): boolean =>
  server?.transport !== 'stdio' && server?.auth?.type === 'oauth' && server.auth.perPrincipal

/**
 * A wildcard means what it can mean: not our own tools, unless it names them, and not a tool that says of itself that
 * it changes things. A server is not believed when it says that a tool is harmless; that it is not is another matter.
 */
function isListed(pattern: string, { server, name, traits, definition }: Entry): boolean {
  const tool = `${server}.${name}`
  if (pattern === tool) return true
  if (!matches(pattern, tool)) return false
  if (server === 'native') return pattern.startsWith('native.')
  if (traits.readOnly) return true
  const { readOnlyHint, destructiveHint } = (definition.annotations ?? {}) as Record<string, unknown>
  return readOnlyHint !== false && destructiveHint !== true
}
