/**
 * How often each duration occurred, in buckets whose bounds grow by the same factor: any percentile is known to within
 * two percent, in two kilobytes, however many calls there were, and two of them add up to a third.
 */
export type Latencies = Uint32Array

/** A little less than the two percent that are promised. */
const error = 0.019
const growth = (1 + error) / (1 - error)
const perUnit = 1 / Math.log(growth)
/** In milliseconds. What is shorter counts as this, what is longer than an hour as an hour. */
const shortest = 0.01
const longest = 3_600_000

export const latencyBuckets = Math.ceil(Math.log(longest / shortest) * perUnit) + 1

export const createLatencies = (): Latencies => new Uint32Array(latencyBuckets)

/** The bucket of a duration: found once for everything that it is counted in. */
export function latencyBucket(ms: number): number {
  if (!(ms > shortest)) return 0
  return Math.min(Math.ceil(Math.log(ms / shortest) * perUnit), latencyBuckets - 1)
}

export function addLatencies(to: Latencies, more: Latencies): void {
  for (let bucket = 0; bucket < latencyBuckets; bucket++) {
    to[bucket] = (to[bucket] as number) + (more[bucket] as number)
  }
}

/** What a bucket stands for: as far from its lower bound as from its upper one, in proportion. */
const middleOf = (bucket: number): number => (shortest * growth ** bucket * 2) / (growth + 1)

/** The duration, in milliseconds, that so large a part of all were not longer than; null where there are none. */
export function percentile(latencies: Latencies, count: number, part: number): number | null {
  if (count === 0) return null
  let rank = Math.max(1, Math.ceil(part * count))
  for (let bucket = 0; bucket < latencies.length; bucket++) {
    rank -= latencies[bucket] as number
    if (rank <= 0) return middleOf(bucket)
  }
  return middleOf(latencies.length - 1)
}
