export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** Exponential backoff: the delay is `firstMs` after 0 failures and doubles with each failure, up to `maxMs`. */
export const backoffMs = (failures: number, { firstMs, maxMs }: Backoff): number =>
  Math.min(firstMs * 2 ** Math.min(failures, 30), maxMs)

/** Full jitter: a random delay up to the backoff, so that a server's clients do not all retry at the same time. */
export const jitteredBackoffMs = (failures: number, backoff: Backoff, random: () => number = Math.random): number =>
  random() * backoffMs(failures, backoff)

/** The longest time that a server can ask for. Timers cannot wait for weeks: Node's fire at once instead. */
const maxRetryAfterMs = 86_400_000

/** Reads a Retry-After header: seconds or an HTTP date, up to a day. Undefined if it is missing or invalid. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  const written = value?.trim() ?? ''
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(written)) return Math.min(Math.ceil(Number(written) * 1_000), maxRetryAfterMs)
  const date = Date.parse(written)
  return Number.isNaN(date) ? undefined : Math.min(Math.max(0, date - now), maxRetryAfterMs)
}
