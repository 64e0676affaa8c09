import type { Result } from '../../core/result.ts'
import type { Plan } from './rules.ts'

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
