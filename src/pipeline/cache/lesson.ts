import type { Result } from '../../core/result.ts'
import { hintsOf, type Members } from './hints.ts'
import type { Plan } from './rules.ts'

/** What is to be done with a result. */
export interface Lesson {
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
export function learn({ body, isError, refusal, listing }: Result, plan: Plan, members: Members): Lesson {
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
