import type { Buckets, Taken } from '../core/buckets.ts'
import { ToolwayError } from '../core/errors.ts'
import { type CallTimes, createCallTimes, windowMs } from './call-times.ts'

/** How many buckets one call looks through for an unused one when there is no room. */
const looksThrough = 8

const allowed: Taken = { allowed: true }

/**
 * Buckets in this process (F8). A bucket without a call in the last minute need not be remembered: what nobody touched
 * from one turn to the next, a minute apart at least, is dropped as a whole. One that holds calls is never dropped,
 * since that would allow them again.
 */
export function memoryBuckets({ most = 100_000 } = {}): Buckets & { readonly size: number } {
  let young = new Map<string, CallTimes>()
  let old = new Map<string, CallTimes>()
  let turnedAt = Number.NEGATIVE_INFINITY
  let latest = Number.NEGATIVE_INFINITY
  /** Those of the call at hand; kept only to be used again. */
  const found: CallTimes[] = []

  const turn = (now: number) => {
    if (now - turnedAt < windowMs) return
    // After two minutes nobody has touched the young ones either: the first call after one minute would have turned.
    old = now - turnedAt < 2 * windowMs ? young : new Map()
    young = new Map()
    turnedAt = now
  }

  const makeRoom = (now: number) => {
    const among = old.size > 0 ? old : young
    let looked = 0
    for (const [key, times] of among) {
      if (looked++ === looksThrough) return
      among.delete(key)
      // Behind the others, so that the next call looks at those.
      if (times.count(now) > 0) among.set(key, times)
    }
  }

  const timesOf = (key: string, now: number): CallTimes => {
    const known = young.get(key)
    if (known) return known
    const kept = old.get(key)
    if (kept) old.delete(key)
    else if (young.size + old.size >= most) throw noRoom(turnedAt + windowMs - now)
    const times = kept ?? createCallTimes()
    young.set(key, times)
    return times
  }

  return {
    get size() {
      return young.size + old.size
    },
    take(buckets, time) {
      // Workers of one machine read the same clock, but what they send may arrive in another order.
      const now = Math.max(time, latest)
      latest = now
      turn(now)
      if (young.size + old.size > most - buckets.length) makeRoom(now)
      let waitMs = 0
      let waitsFor = ''
      found.length = 0
      for (const { key, perMinute } of buckets) {
        const times = timesOf(key, now)
        found.push(times)
        const wait = times.waitMs(perMinute, now)
        if (wait <= waitMs) continue
        waitMs = wait
        waitsFor = key
      }
      if (waitMs > 0) return { allowed: false, key: waitsFor, retryAfterMs: waitMs }
      buckets.forEach(({ perMinute }, index) => void found[index]?.add(perMinute, now))
      return allowed
    },
  }
}

function noRoom(retryAfterMs: number): ToolwayError {
  const sentence = `More limits are in use within a minute than can be counted; call again in ${Math.ceil(retryAfterMs / 1000)} seconds.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
}
