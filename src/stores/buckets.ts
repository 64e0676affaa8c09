import type { Buckets, Taken } from '../core/buckets.ts'
import { ToolwayError } from '../core/errors.ts'

/**
 * What has been taken from a bucket and has not come back yet. A call counts as many parts as a minute has
 * milliseconds, so that `rate` parts come back in each millisecond: everything is a whole number, and nothing is
 * ever rounded.
 */
interface Level {
  used: number
  /** When `used` was true. */
  at: number
  rate: number
}

const minute = 60_000

/** More calls a minute than this nobody makes, and the parts of fewer are numbers that can be counted exactly. */
const countable = 100_000_000_000

/** How many buckets one call looks through for a full one when there is no room. */
const looksThrough = 8

const allowed: Taken = { allowed: true }

/**
 * Buckets in this process (F8). Whatever was not used for a minute is full again, and a full bucket need not be
 * remembered: what nobody touched from one turn to the next, a minute apart at least, is dropped as a whole. One that
 * is not full is never dropped, since that would give calls away.
 */
export function memoryBuckets({ most = 100_000 } = {}): Buckets & { readonly size: number } {
  let young = new Map<string, Level>()
  let old = new Map<string, Level>()
  let turnedAt = Number.NEGATIVE_INFINITY
  /** Those of the call at hand; kept only to be used again. */
  const levels: Level[] = []

  const turn = (now: number) => {
    // A clock that was set back must not keep buckets for as long as it was wrong.
    if (now < turnedAt) turnedAt = now
    if (now - turnedAt < minute) return
    // After two minutes nobody has touched the young ones either: the first call after one minute would have turned.
    old = now - turnedAt < 2 * minute ? young : new Map()
    young = new Map()
    turnedAt = now
  }

  const makeRoom = (now: number) => {
    const among = old.size > 0 ? old : young
    let looked = 0
    for (const [key, level] of among) {
      if (looked++ === looksThrough) return
      among.delete(key)
      // Behind the others, so that the next call looks at those.
      if (usedBy(level, now) > 0) among.set(key, level)
    }
  }

  const levelOf = (key: string, rate: number, now: number): Level => {
    const known = young.get(key)
    if (known) return known
    const kept = old.get(key)
    if (kept) old.delete(key)
    else if (young.size + old.size >= most) throw noRoom(turnedAt + minute - now)
    const level = kept ?? { used: 0, at: now, rate }
    young.set(key, level)
    return level
  }

  return {
    get size() {
      return young.size + old.size
    },
    take(buckets, now) {
      turn(now)
      if (young.size + old.size > most - buckets.length) makeRoom(now)
      let waitMs = 0
      let waitsFor = ''
      levels.length = 0
      for (const { key, perMinute } of buckets) {
        const rate = Math.min(perMinute, countable)
        const level = levelOf(key, rate, now)
        levels.push(level)
        const wait = bringUpTo(now, level, rate)
        if (wait <= waitMs) continue
        waitMs = wait
        waitsFor = key
      }
      if (waitMs > 0) return { allowed: false, key: waitsFor, retryAfterMs: waitMs }
      for (const level of levels) level.used += minute
      return allowed
    },
  }
}

function usedBy({ used, at, rate }: Level, now: number): number {
  // More than a minute fills any bucket; a clock that was set back brings nothing, and takes nothing away.
  const passed = Math.min(Math.max(now - at, 0), minute)
  return Math.max(used - passed * rate, 0)
}

/** Makes a level true for now; gives the milliseconds until one more call fits. */
function bringUpTo(now: number, level: Level, rate: number): number {
  // A limit that was lowered since then is used up, and no more than that.
  if (level.rate !== rate) level.used = Math.min(usedBy(level, now), rate * minute)
  else level.used = usedBy(level, now)
  level.rate = rate
  level.at = now
  const missing = level.used + minute - rate * minute
  return missing <= 0 ? 0 : Math.ceil(missing / rate)
}

function noRoom(retryAfterMs: number): ToolwayError {
  const sentence = `More limits are in use within a minute than can be counted; call again in ${Math.ceil(retryAfterMs / 1000)} seconds.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
}
