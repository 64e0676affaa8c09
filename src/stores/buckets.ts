import { ToolwayError } from '../core/errors.ts'
import type { Buckets, Taken } from '../core/stores.ts'

/** How many unused buckets each call may forget: more than it can add, so that memory shrinks without long pauses. */
const maxForgotten = 16

const callAllowed: Taken = { allowed: true }

/**
 * Buckets in this process (F8). Those without a call in the last minute are forgotten, the least recently used first. A
 * bucket that still holds calls is never dropped, because those calls would no longer count.
 */
export function memoryBuckets({ most = 100_000 } = {}): Buckets & { readonly size: number } {
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
