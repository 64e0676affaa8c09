import type { CallOutcome } from '../../core/observer.ts'

/**
 * Histogram with exponential buckets: any percentile within two percent, in two kilobytes, for any number of calls.
 * Histograms can be added.
 */
export type Latencies = Uint32Array

/** Slightly less than the promised two percent. */
const error = 0.019
const growth = (1 + error) / (1 - error)
const perUnit = 1 / Math.log(growth)
/** Range in milliseconds; durations outside are clamped. */
const shortest = 0.01
const longest = 3_600_000

const latencyBuckets = Math.ceil(Math.log(longest / shortest) * perUnit) + 1

export const createLatencies = (): Latencies => new Uint32Array(latencyBuckets)

/** Computed once for all histograms that count the duration. */
export function latencyBucket(ms: number): number {
  if (!(ms > shortest)) return 0
  return Math.min(Math.ceil(Math.log(ms / shortest) * perUnit), latencyBuckets - 1)
}

export function addLatencies(to: Latencies, more: Latencies): void {
  for (let bucket = 0; bucket < latencyBuckets; bucket++) {
    to[bucket] = (to[bucket] as number) + (more[bucket] as number)
  }
}

/** The value with the same relative distance to both bounds. */
const middleOf = (bucket: number): number => (shortest * growth ** bucket * 2) / (growth + 1)

export function percentile(latencies: Latencies, count: number, part: number): number | null {
  if (count === 0) return null
  let rank = Math.max(1, Math.ceil(part * count))
  for (let bucket = 0; bucket < latencies.length; bucket++) {
    rank -= latencies[bucket] as number
    if (rank <= 0) return middleOf(bucket)
  }
  return middleOf(latencies.length - 1)
}

/** Pairs of bucket and count, without empty buckets. */
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

export function addPacked(latencies: Latencies, packed: Packed): void {
  for (let at = 0; at < packed.length; at += 2) {
    const bucket = packed[at] as number
    latencies[bucket] = (latencies[bucket] as number) + (packed[at + 1] as number)
  }
}

export interface CallCounts {
  calls: number
  /** Failures of the gateway, the server or the tool. */
  errors: number
  denials: number
  /** Excludes denied calls: a denial takes no time and would distort the average. */
  sumMs: number
}

export const noCounts = (): CallCounts => ({ calls: 0, errors: 0, denials: 0, sumMs: 0 })

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

/** Averages and percentiles are null without calls. */
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

/** Four significant digits; more would suggest false precision. */
const round = (ms: number | null): number | null => (ms === null ? null : Number(ms.toPrecision(4)))
