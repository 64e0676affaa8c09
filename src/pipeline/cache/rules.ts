import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { Entry } from '../../core/entry.ts'
import { matches } from '../../lib/wildcard.ts'

export interface Plan {
  /** Hash of the server and the definition: a result from another server or for another definition must not match. */
  readonly identity: string
  readonly ttlMs: number
  /** Maximum size of a stored result; a larger one would displace many smaller ones. */
  readonly maxBytes: number
  /** Whether results are stored only if the server sends a TTL. */
  readonly hinted: boolean
  /** Whether all agents and principals share the results. */
  readonly shared: boolean
  /** Whether principals that act as the same agent share the results. */
  readonly byAgent: boolean
  /** Which connection answers: shared, one per caller, or one per call. */
  readonly session: 'shared' | 'caller' | 'call'
  readonly learnt: Lessons
}

/** What earlier results have shown. Except for `joins`, these flags only make the cache more restrictive. */
export interface Lessons {
  joins: boolean
  /** Whether results are kept per principal: the server requires it, or each principal has its own OAuth grant. */
  private: boolean
  /** Whether the server has sent a caller a request during a call. */
  asks: boolean
}

/** `writes`: the call invalidates the server's cached results. Undefined: it is not cached and invalidates nothing. */
export type CacheRules = (entry: Entry) => Plan | 'writes' | undefined

const largestPart = 16

export function cacheRules(
  config: Pick<Config, 'cache' | 'mcpServers' | 'naming'>,
  needsApproval: (entry: Entry) => string | undefined,
): CacheRules | undefined {
  const { cache, mcpServers, naming } = config
  if (!cache.enabled) return undefined
  const known = new WeakMap<Entry, Plan | 'writes' | 'nothing'>()

  const planOf = (entry: Entry, hinted: boolean): Plan => {
    const { kind, server, name, definition } = entry
    // Results contain resource names as callers see them, so the naming is part of the identity.
    const made = [server, mcpServers[server] ?? null, naming, kind, name, definition]
    return {
      identity: hash('sha256', JSON.stringify(made), 'base64url'),
      ttlMs: cache.ttl,
      maxBytes: Math.floor(cache.maxBytes / largestPart),
      hinted,
      shared: kind === 'tool' && cache.shared.some((pattern) => matches(pattern, `${server}.${name}`)),
      // `learn` makes hinted results private unless the server sends `cacheScope: public`.
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
      // Cache native tools only if listed: they change nothing, but their results may differ from call to call.
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
 * Whether a pattern in `cache.tools` selects a tool. A wildcard selects native tools only if the pattern starts with
 * `native.`, and it never selects tools that declare that they change things. A server's claim that a tool is harmless
 * is not trusted, but its claim that a tool is harmful is.
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
