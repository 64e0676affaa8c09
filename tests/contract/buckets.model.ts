import type { Bucket, Taken } from '../../src/core/buckets.ts'

/** A fraction of two whole numbers of any size. */
interface Tokens {
  readonly count: bigint
  readonly of: bigint
}

/**
 * The reference: a bucket is a number of tokens, kept as an exact fraction. It begins full, gains `perMinute` tokens
 * in a minute, holds no more than `perMinute`, and a call takes one from each of its buckets or none at all.
 */
export function modelBuckets(): { take(buckets: readonly Bucket[], now: number): Taken } {
  const levels = new Map<string, { tokens: Tokens; at: number }>()

  const tokensIn = ({ key, perMinute }: Bucket, now: number): Tokens => {
    const before = levels.get(key)
    if (!before) return { count: BigInt(perMinute), of: 1n }
    const passed = BigInt(Math.max(0, now - before.at))
    const { count, of } = before.tokens
    const gained = { count: count * 60_000n + passed * BigInt(perMinute) * of, of: of * 60_000n }
    return gained.count > BigInt(perMinute) * gained.of ? { count: BigInt(perMinute), of: 1n } : reduced(gained)
  }

  return {
    take(buckets, now) {
      const found = buckets.map((bucket) => ({ bucket, tokens: tokensIn(bucket, now) }))
      for (const { bucket, tokens } of found) levels.set(bucket.key, { tokens, at: now })
      const waits = found.map(({ bucket, tokens }) => ({ key: bucket.key, ms: waitFor(tokens, bucket.perMinute) }))
      const longest = waits.reduce((most, wait) => (wait.ms > most.ms ? wait : most))
      if (longest.ms > 0) return { allowed: false, key: longest.key, retryAfterMs: longest.ms }
      for (const { bucket, tokens } of found) {
        levels.set(bucket.key, { tokens: { count: tokens.count - tokens.of, of: tokens.of }, at: now })
      }
      return { allowed: true }
    },
  }
}

/** Whole milliseconds until there is one token. */
function waitFor({ count, of }: Tokens, perMinute: number): number {
  const missing = of - count
  if (missing <= 0n) return 0
  const [numerator, denominator] = [missing * 60_000n, of * BigInt(perMinute)]
  return Number((numerator + denominator - 1n) / denominator)
}

function reduced({ count, of }: Tokens): Tokens {
  let [a, b] = [count, of]
  while (b > 0n) [a, b] = [b, a % b]
  return a > 1n ? { count: count / a, of: of / a } : { count, of }
}
