import { setBounded } from '../../lib/memoize.ts'

/** A bucket holds `burst` tokens and regains one per interval. */
export interface TokenRate {
  readonly burst: number
  readonly intervalMs: number
}

/** A token bucket with continuous refill, stored as the time at which it is full again. `now` is monotonic. */
export class TokenBucket {
  #fullAt = Number.NEGATIVE_INFINITY

  isFull(now: number): boolean {
    return this.#fullAt <= now
  }

  /** Takes one token. Returns 0, or the milliseconds until a token is available. */
  take({ burst, intervalMs }: TokenRate, now: number): number {
    const fullAt = Math.max(this.#fullAt, now)
    const waitMs = fullAt - now - (burst - 1) * intervalMs
    if (waitMs > 0) return Math.ceil(waitMs)
    this.#fullAt = fullAt + intervalMs
    return 0
  }

  giveBack({ intervalMs }: TokenRate): void {
    this.#fullAt -= intervalMs
  }
}

/** A bucket per key. Beyond `max` of them, the least recently used one is forgotten. */
export class TokenBuckets {
  readonly #buckets = new Map<string, TokenBucket>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  take(key: string, rate: TokenRate, now: number): number {
    const bucket = this.#buckets.get(key) ?? new TokenBucket()
    setBounded(this.#buckets, key, bucket, this.#max)
    return bucket.take(rate, now)
  }

  giveBack(key: string, rate: TokenRate, now: number): void {
    const bucket = this.#buckets.get(key)
    bucket?.giveBack(rate)
    if (bucket?.isFull(now)) this.#buckets.delete(key)
  }
}
