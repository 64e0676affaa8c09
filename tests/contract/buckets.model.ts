import type { Bucket, Taken } from '../../src/core/stores.ts'

const windowMs = 60_000

/**
 * The reference: the time of every call that was allowed. A call is allowed where each of its buckets has had fewer
 * than `perMinute` in the 60 seconds before it, and then counts in all of them.
 */
export function modelBuckets(): { take(buckets: readonly Bucket[], now: number): Taken } {
  const calls = new Map<string, number[]>()

  const waitFor = ({ key, perMinute }: Bucket, now: number): number => {
    const recent = (calls.get(key) ?? []).filter((at) => at > now - windowMs)
    // Room comes when the one leaves after which fewer than the limit are left.
    const leaving = recent[recent.length - perMinute]
    return leaving === undefined ? 0 : leaving + windowMs - now
  }

  return {
    take(buckets, now) {
      const waits = buckets.map((bucket) => ({ key: bucket.key, ms: waitFor(bucket, now) }))
      const longest = waits.reduce((most, wait) => (wait.ms > most.ms ? wait : most))
      if (longest.ms > 0) return { allowed: false, key: longest.key, retryAfterMs: longest.ms }
      for (const { key } of buckets) calls.set(key, [...(calls.get(key) ?? []), now])
      return { allowed: true }
    },
  }
}
