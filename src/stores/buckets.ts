import { ToolwayError } from '../core/errors.ts'
import type { Buckets, Taken } from '../core/stores.ts'

/** How many buckets each call inspects to find unused ones to evict. */
const maxInspected = 8

const allowed: Taken = { allowed: true }

/**
 * Buckets in this process (F8). A bucket without a call in the last minute can be dropped: there are two generations of
 * buckets, which rotate at most once a minute, and a rotation drops the older generation as a whole. A bucket that
 * still holds calls is never dropped, because those calls would no longer count.
 */
export function memoryBuckets({ most = 100_000 } = {}): Buckets & { readonly size: number } {
  let young = new Map<string, CallTimes>()
  let old = new Map<string, CallTimes>()
  let turnedAt = Number.NEGATIVE_INFINITY
  let latest = Number.NEGATIVE_INFINITY
  /** The buckets for the current call; the array is reused to avoid allocations. */
  const found: CallTimes[] = []

  const turn = (now: number) => {
    if (now - turnedAt < windowMs) return
    // After two minutes the young generation is unused too: a call in between would have rotated the generations.
    old = now - turnedAt < 2 * windowMs ? young : new Map()
    young = new Map()
    turnedAt = now
  }

  const makeRoom = (now: number) => {
    const among = old.size > 0 ? old : young
    let looked = 0
    for (const [key, times] of among) {
      if (looked++ === maxInspected) return
      among.delete(key)
      // Move a bucket that is in use to the end, so that the next call inspects others.
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
      // Never go back in time: workers on one machine share the clock, but their messages can arrive out of order.
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
  const sentence = `Too many rate limits are in use at once; try again in ${Math.ceil(retryAfterMs / 1000)} seconds.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
}

export const windowMs = 60_000

/**
 * For limits up to this one, each call has its own timestamp. For higher limits, all calls within 250 ms share the time
 * of the last one. No call leaves the window too early, so no window exceeds the limit.
 */
export const maxExact = 240
export const groupMs = windowMs / maxExact

/** The times of the calls in the last minute: a sliding window of groups, stored in at most 500 numbers. */
interface CallTimes {
  count(now: number): number
  /** Milliseconds until the window holds fewer than `limit` calls; zero if it already does. */
  waitMs(limit: number, now: number): number
  add(limit: number, now: number): void
}

function createCallTimes(): CallTimes {
  /** Two numbers per group: the time of its last call, and its number of calls. Groups before `head` have expired. */
  let groups: number[] = []
  let head = 0
  let total = 0
  let begun = 0

  const leave = (now: number) => {
    while (head < groups.length && (groups[head] as number) <= now - windowMs) {
      total -= groups[head + 1] as number
      head += 2
    }
    if (head === groups.length) groups.length = head = 0
    else if (head > 64 && head > groups.length / 2) {
      groups = groups.slice(head)
      head = 0
    }
  }

  return {
    count(now) {
      leave(now)
      return total
    },
    waitMs(limit, now) {
      leave(now)
      let left = total
      for (let at = head; left >= limit; at += 2) {
        left -= groups[at + 1] as number
        if (left < limit) return (groups[at] as number) + windowMs - now
      }
      return 0
    },
    add(limit, now) {
      total++
      const last = groups.length - 2
      if (last >= head && now - begun < (limit > maxExact ? groupMs : 1)) {
        groups[last] = now
        ;(groups[last + 1] as number)++
        return
      }
      begun = now
      groups.push(now, 1)
    },
  }
}
