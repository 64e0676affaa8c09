import type { CallOutcome } from '../../core/observer.ts'

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

const latencyBuckets = Math.ceil(Math.log(longest / shortest) * perUnit) + 1

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

/** The same without the empty buckets, for what is only kept: pairs of a bucket and its count. */
export type Packed = Uint32Array

export function pack(latencies: Latencies): Packed {
  let filled = 0
  for (const count of latencies) if (count > 0) filled++
  const packed = new Uint32Array(filled * 2)
  let at = 0
  for (let bucket = 0; bucket < latencyBuckets; bucket++) {
    const count = latencies[bucket] as number
    if (count === 0) continue
    packed[at++] = bucket
    packed[at++] = count
  }
  return packed
}

/** Adds what was packed to what is counted. */
export function addPacked(latencies: Latencies, packed: Packed): void {
  for (let at = 0; at < packed.length; at += 2) {
    const bucket = packed[at] as number
    latencies[bucket] = (latencies[bucket] as number) + (packed[at + 1] as number)
  }
}

/** What is counted of calls beside how long they took. */
export interface CallCounts {
  calls: number
  /** Failures, ours or a server's or a tool's own. */
  errors: number
  denials: number
  /** Of those that were not denied: a refusal takes no time, and says nothing about how long a call does. */
  sumMs: number
}

export const noCounts = (): CallCounts => ({ calls: 0, errors: 0, denials: 0, sumMs: 0 })

/** Counts one call, and its duration under the bucket it belongs to. */
export function count(
  counts: CallCounts,
  latencies: Uint32Array,
  kind: CallOutcome['kind'],
  ms: number,
  bucket: number,
): void {
  counts.calls++
  if (kind === 'denied') {
    counts.denials++
    return
  }
  if (kind !== 'answered') counts.errors++
  counts.sumMs += ms
  latencies[bucket] = (latencies[bucket] as number) + 1
}

export function addCounts(to: CallCounts, { calls, errors, denials, sumMs }: CallCounts): void {
  to.calls += calls
  to.errors += errors
  to.denials += denials
  to.sumMs += sumMs
}

/** Counts and times of a stretch of time. Percentiles are null where nothing was called. */
export interface CallFigures {
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly perSecond: number
  readonly averageMs: number | null
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

/** What was counted in so many milliseconds, as people read it. */
export function figuresOf(
  { calls, errors, denials, sumMs }: CallCounts,
  latencies: Latencies,
  ms: number,
): CallFigures {
  const timed = calls - denials
  const rounded = (part: number) => round(percentile(latencies, timed, part))
  return {
    ...{ calls, errors, denials },
    perSecond: ms > 0 ? (calls * 1000) / ms : 0,
    averageMs: timed === 0 ? null : round(sumMs / timed),
    p50Ms: rounded(0.5),
    p95Ms: rounded(0.95),
    p99Ms: rounded(0.99),
  }
}

/** Four digits: the rest would only pretend to be known. */
const round = (ms: number | null): number | null => (ms === null ? null : Number(ms.toPrecision(4)))
