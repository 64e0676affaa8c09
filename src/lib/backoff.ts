export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** Exponential backoff: the delay is `firstMs` after 0 failures and doubles with each failure, up to `maxMs`. */
export const backoffMs = (failures: number, { firstMs, maxMs }: Backoff): number =>
  Math.min(firstMs * 2 ** Math.min(failures, 30), maxMs)

/** Full jitter: a random delay up to the backoff, so that clients of one server do not retry in step. */
export const jitteredBackoffMs = (failures: number, backoff: Backoff, random: () => number = Math.random): number =>
  random() * backoffMs(failures, backoff)
