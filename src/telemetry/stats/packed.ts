import { type Latencies, latencyBuckets } from './latencies.ts'

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
