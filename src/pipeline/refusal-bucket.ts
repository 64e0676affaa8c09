/** A bucket that refills all the time, kept as the one moment at which it would be full again. */
export interface Bucket {
  fullAt: number
  /** How long one takes to come back, and all of them. */
  readonly oneMs: number
  readonly allMs: number
}

/** A bucket that nobody has drawn from. */
export const newBucket = (burst: number, perMinute: number): Bucket => {
  const oneMs = 60_000 / perMinute
  return { fullAt: Number.NEGATIVE_INFINITY, oneMs, allMs: burst * oneMs }
}

export const isFull = ({ fullAt }: Bucket, now: number): boolean => fullAt <= now

/** Takes one; where none is left, the milliseconds until one is. */
export function take(bucket: Bucket, now: number): number {
  const { oneMs, allMs } = bucket
  const fullAt = Math.max(bucket.fullAt, now)
  const missing = fullAt + oneMs - now - allMs
  bucket.fullAt = missing > 0 ? fullAt : fullAt + oneMs
  return missing > 0 ? Math.ceil(missing) : 0
}
