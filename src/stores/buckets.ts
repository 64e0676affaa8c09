import { ToolwayError } from '../core/errors.ts'
import type { Bucket, Buckets, Taken } from '../core/stores.ts'

/** How many unused buckets each call may forget: more than it can add, so that memory shrinks without long pauses. */
const maxForgotten = 16

export const callAllowed: Taken = { allowed: true }

/** A lease is at most this part of what is left: the last calls of a limit are counted one by one. */
const leastLeft = 10

export interface LeasingBuckets extends Buckets {
  /**
   * Counts up to `calls` further calls in every bucket, as if they were made at `until`, and returns how many. Another
   * process may make them until then. None if less than ten times as many are left in a bucket.
   */
  lease(buckets: readonly Bucket[], calls: number, until: number): number
  /** Takes back calls of a lease that were not made. */
  giveBack(buckets: readonly Bucket[], calls: number, until: number): void
}

/**
 * Buckets in this process (F8). Those without a call in the last minute are forgotten, the least recently used first. A
 * bucket that still holds calls is never dropped, because those calls would no longer count.
 */
export function memoryBuckets({ most = 100_000 } = {}): LeasingBuckets & { readonly size: number } {
  /** The least recently used first. */
  const used = new Map<string, CallTimes>()
  let latest = Number.NEGATIVE_INFINITY
  /** The buckets for the current call; the array is reused to avoid allocations. */
  const found: CallTimes[] = []

  const forgetUnused = (now: number) => {
    if (now - latest >= limitWindowMs) used.clear()
    let forgotten = 0
    for (const [key, times] of used) {
      if (times.count(now) > 0 || forgotten++ === maxForgotten) return
      used.delete(key)
    }
  }

  const timesOf = (key: string, now: number): CallTimes => {
    const known = used.get(key)
    if (!known && used.size >= most) throw noRoom(used, now)
    const times = known ?? new CallTimes()
    used.delete(key)
    used.set(key, times)
    return times
  }

  return {
    get size() {
      return used.size
    },
    take(buckets, time) {
      // Never go back in time: workers on one machine share the clock, but their messages can arrive out of order.
      const now = Math.max(time, latest)
      forgetUnused(now)
      latest = now
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
    lease(buckets, calls, until) {
      const left = buckets.map(({ key, perMinute }) => perMinute - (used.get(key)?.count(latest) ?? perMinute))
      const leased = Math.min(calls, Math.floor(Math.min(...left) / leastLeft))
      if (leased > 0) for (const { key, perMinute } of buckets) used.get(key)?.add(perMinute, until, leased)
      return leased
    },
    giveBack(buckets, calls, until) {
      for (const { key } of buckets) used.get(key)?.remove(calls, until)
    },
  }
}

function noRoom(used: ReadonlyMap<string, CallTimes>, now: number): ToolwayError {
  const [oldest] = used.values()
  const retryAfterMs = oldest?.waitMs(1, now) ?? 0
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

  add(limit: number, now: number, calls = 1): void {
    this.#total += calls
    const last = this.#groups.length - 2
    // The last call may be one of a lease, which ends later.
    const time = last >= this.#head ? Math.max(now, this.#groups[last] as number) : now
    if (last >= this.#head && time - this.#begun < (limit > maxExact ? groupMs : 1)) {
      this.#groups[last] = time
      ;(this.#groups[last + 1] as number) += calls
      return
    }
    this.#begun = time
    this.#groups.push(time, calls)
  }

  /** Removes calls that were added with this time: they are in the first group that is not older. */
  remove(calls: number, time: number): void {
    const groups = this.#groups
    for (let at = groups.length - 2; at >= this.#head; at -= 2) {
      if (at > this.#head && (groups[at - 2] as number) >= time) continue
      const removed = Math.min(calls, groups[at + 1] as number)
      ;(groups[at + 1] as number) -= removed
      this.#total -= removed
      return
    }
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
