import { ToolwayError } from '../core/errors.ts'
import type { Buckets, Taken } from '../core/stores.ts'

/** How many buckets each call inspects to find unused ones to evict. */
const maxInspectedBuckets = 8

const callAllowed: Taken = { allowed: true }

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
    if (now - turnedAt < limitWindowMs) return
    // After two minutes the young generation is unused too: a call in between would have rotated the generations.
    old = now - turnedAt < 2 * limitWindowMs ? young : new Map()
    young = new Map()
    turnedAt = now
  }

  const makeRoom = (now: number) => {
    const among = old.size > 0 ? old : young
    let looked = 0
    for (const [key, times] of among) {
      if (looked++ === maxInspectedBuckets) return
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
    else if (young.size + old.size >= most) throw noRoom(turnedAt + limitWindowMs - now)
    const times = kept ?? new CallTimes()
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
      return callAllowed
    },
  }
}

function noRoom(retryAfterMs: number): ToolwayError {
  const sentence = `Too many rate limits are in use at once; try again in ${Math.ceil(retryAfterMs / 1000)} seconds.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs })
}

export const limitWindowMs = 60_000

/**
 * For limits up to this one, each call has its own timestamp. For higher limits, all calls within 250 ms share the time
 * of the last one. No call leaves the window too early, so no window exceeds the limit.
 */
export const maxExact = 240
export const groupMs = limitWindowMs / maxExact

/** The times of the calls in the last minute: a sliding window of groups, stored in at most 500 numbers. */
class CallTimes {
  /** Two numbers per group: the time of its last call, and its number of calls. Groups before `head` have expired. */
  #groups: number[] = []
  #head = 0
  #total = 0
  #begun = 0

  count(now: number): number {
    this.#expire(now)
    return this.#total
  }

  /** Milliseconds until the window holds fewer than `limit` calls; zero if it already does. */
  waitMs(limit: number, now: number): number {
    this.#expire(now)
    let left = this.#total
    for (let at = this.#head; left >= limit; at += 2) {
      left -= this.#groups[at + 1] as number
      if (left < limit) return (this.#groups[at] as number) + limitWindowMs - now
    }
    return 0
  }

  add(limit: number, now: number): void {
    this.#total++
    const last = this.#groups.length - 2
    if (last >= this.#head && now - this.#begun < (limit > maxExact ? groupMs : 1)) {
      this.#groups[last] = now
      ;(this.#groups[last + 1] as number)++
      return
    }
    this.#begun = now
    this.#groups.push(now, 1)
  }

  #expire(now: number): void {
    const groups = this.#groups
    while (this.#head < groups.length && (groups[this.#head] as number) <= now - limitWindowMs) {
      this.#total -= groups[this.#head + 1] as number
      this.#head += 2
    }
    if (this.#head === groups.length) groups.length = this.#head = 0
    else if (this.#head > 64 && this.#head > groups.length / 2) {
      this.#groups = groups.slice(this.#head)
      this.#head = 0
    }
  }
}
