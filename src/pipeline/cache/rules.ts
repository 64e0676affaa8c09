import { hash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { Entry } from '../../core/entry.ts'
import type { Result } from '../../core/result.ts'
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

/** Caching hints in a result (protocol revision 2026-07-28). */
interface Hints {
  /** False for results that ask for input or only started a task. */
  readonly complete: boolean
  readonly ttlMs?: number | undefined
  /** Unknown values count as private. */
  readonly scope?: 'public' | 'private' | undefined
}

/** Finds the members of one JSON object, as slices; undefined if the bytes are not an object. */
export type FindMembers = (bytes: Buffer) => ReadonlyMap<string, Buffer> | undefined

const nothing: Hints = { complete: true }

/** Reads the hints from the top level of a result. */
function hintsOf(body: Buffer, members: FindMembers): Hints {
  if (!mayHold(body)) return nothing
  const found = members(body)
  // An unreadable result may contain any hint, so do not cache it.
  if (found === undefined) return { complete: false }
  const type = found.get('resultType')
  const ttl = found.get('ttlMs')
  const scope = found.get('cacheScope')
  return {
    complete: type === undefined || type.equals(complete),
    ttlMs: ttl && millisecondsOf(ttl),
    scope: scope && (scope.equals(everybody) ? 'public' : 'private'),
  }
}

const complete = Buffer.from('"complete"')
const everybody = Buffer.from('"public"')

/**
 * Whether a result may contain hints. A native search for the keys is cheaper than parsing. The keys can be spelled
 * differently only with a \u escape, so results that contain one are parsed as well.
 */
const mayHold = (body: Buffer): boolean =>
  body.includes('"resultType"') || body.includes('"ttlMs"') || body.includes('"cacheScope"') || body.includes('\\u')

function millisecondsOf(bytes: Buffer): number {
  const text = bytes.toString('latin1')
  return /^[0-9]/.test(text) ? Number(text) : 0
}

const notShared = { keepMs: 0, joins: false }

/** Decides how to cache a result, and updates the plan. Hints can only restrict what the configuration allows. */
export function learn({ body, isError, refusal, listing }: Result, plan: Plan, members: FindMembers) {
  const { learnt, hinted } = plan
  const { complete, ttlMs = hinted ? 0 : plan.ttlMs, scope } = hintsOf(body.bytes, members)
  // If caching depends on the server's hints, so does sharing: without `cacheScope`, the result is private.
  if (scope === 'private' || (hinted && scope === undefined)) learnt.private = true
  // A result that asks for input, only started a task or has a TTL of 0 is for this caller only.
  if (!complete || ttlMs === 0) {
    learnt.joins = false
    return notShared
  }
  if (hinted) learnt.joins = true
  const kept = !isError && refusal === undefined && listing === undefined && body.bytes.length <= plan.maxBytes
  return { keepMs: kept ? Math.min(plan.ttlMs, ttlMs) : 0, joins: true }
}
