import type { Result } from '../../core/result.ts'
import type { Plan } from './rules.ts'

/** What a server says about keeping a result (2026-07-28). */
export interface Hints {
  /** The result is one: nothing is missing, nothing was only begun. */
  readonly complete: boolean
  /** How long it may be kept; undefined where the server does not say. */
  readonly ttlMs?: number
  /** Who may share it; whatever is neither of the two is meant to be private. */
  readonly scope?: 'public' | 'private'
}

/** Finds the members of one JSON object, as slices; undefined for anything that is no object. */
export type FindMembers = (bytes: Buffer) => ReadonlyMap<string, Buffer> | undefined

const nothing: Hints = { complete: true }

/** Reads what stands at the top of a result, and nothing else of it. */
function hintsOf(body: Buffer, members: FindMembers): Hints {
  if (!mayHold(body)) return nothing
  const found = members(body)
  // What cannot be read may say anything.
  if (found === undefined) return { complete: false }
  const type = found.get('resultType')
  const ttl = found.get('ttlMs')
  const scope = found.get('cacheScope')
  return {
    complete: type === undefined || type.equals(complete),
    ...(ttl && { ttlMs: millisecondsOf(ttl) }),
    ...(scope && { scope: scope.equals(everybody) ? 'public' : 'private' }),
  }
}

const complete = Buffer.from('"complete"')
const everybody = Buffer.from('"public"')

/** A native search is cheaper than reading. Letters can otherwise only be spelt as \u escapes. */
const mayHold = (body: Buffer): boolean =>
  body.includes('"resultType"') || body.includes('"ttlMs"') || body.includes('"cacheScope"') || body.includes('\\u')

/** Whatever is no time to keep something for is none at all. */
function millisecondsOf(bytes: Buffer): number {
  const text = bytes.toString('latin1')
  return /^[0-9]/.test(text) ? Number(text) : 0
}

/** What is to be done with a result. */
interface Lesson {
  /** For how long it is kept; 0 for not at all. */
  readonly keepMs: number
  /** Whether those who asked for the same at the same time may have it. */
  readonly joins: boolean
}

const alone: Lesson = { keepMs: 0, joins: false }

/**
 * Judges a result, and remembers what it shows about those to come. A server can narrow what the operator wants, and
 * never widen it.
 */
export function learn({ body, isError, refusal, listing }: Result, plan: Plan, members: FindMembers): Lesson {
  const { learnt, hinted } = plan
  const { complete, ttlMs = hinted ? 0 : plan.ttlMs, scope } = hintsOf(body.bytes, members)
  // Where the server must say that results may be kept, it must also say that they may be shared.
  if (scope === 'private' || (hinted && scope === undefined)) learnt.private = true
  // One that asks for something, or has only begun, is between the server and this caller.
  if (!complete || ttlMs === 0) {
    learnt.joins = false
    return alone
  }
  if (hinted) learnt.joins = true
  const kept = !isError && refusal === undefined && listing === undefined && body.bytes.length <= plan.maxBytes
  return { keepMs: kept ? Math.min(plan.ttlMs, ttlMs) : 0, joins: true }
}
