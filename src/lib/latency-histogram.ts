/** A histogram with exponential buckets, which takes two kilobytes. Percentiles are accurate to two percent. */
export type Latencies = Uint32Array

/** The relative error, slightly less than the promised two percent. */
const error = 0.019
const growth = (1 + error) / (1 - error)
const perUnit = 1 / Math.log(growth)
/** The range of durations in milliseconds. Durations outside this range are clamped. */
const minMs = 0.01
const maxLatencyMs = 3_600_000

const latencyBuckets = Math.ceil(Math.log(maxLatencyMs / minMs) * perUnit) + 1

export const createLatencies = (): Latencies => new Uint32Array(latencyBuckets)

/** The bucket for a duration. Computed once per call, for all histograms that count the call. */
export function latencyBucket(ms: number): number {
  if (!(ms > minMs)) return 0
  return Math.min(Math.ceil(Math.log(ms / minMs) * perUnit), latencyBuckets - 1)
}

export function addLatencies(to: Latencies, more: Latencies): void {
  for (let bucket = 0; bucket < latencyBuckets; bucket++) {
    to[bucket] = (to[bucket] as number) + (more[bucket] as number)
  }
}

/** The value with the same relative distance to both bounds of a bucket. */
const middleOf = (bucket: number): number => (minMs * growth ** bucket * 2) / (growth + 1)

export function percentile(latencies: Latencies, count: number, part: number): number | null {
  if (count === 0) return null
  let rank = Math.max(1, Math.ceil(part * count))
  for (let bucket = 0; bucket < latencies.length; bucket++) {
    rank -= latencies[bucket] as number
    if (rank <= 0) return middleOf(bucket)
  }
  return middleOf(latencies.length - 1)
}

/** Pairs of bucket and count. Empty buckets are omitted. */
export type Packed = Uint32Array

export function pack(latencies: Latencies): Packed {
  const packed: number[] = []
  for (const [bucket, count] of latencies.entries()) if (count > 0) packed.push(bucket, count)
  return Uint32Array.from(packed)
}

export function addPacked(latencies: Latencies, packed: Packed): void {
  for (let at = 0; at < packed.length; at += 2) {
    const bucket = packed[at] as number
    latencies[bucket] = (latencies[bucket] as number) + (packed[at + 1] as number)
  }
}
