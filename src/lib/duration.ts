export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: hourMs, d: dayMs } as const

const durationPattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds from `500ms`, `30s`, `5m`, `1h` or `2d`; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = durationPattern.exec(text.trim()) ?? []
  return unit === undefined ? undefined : Math.round(Number(count) * durationUnits[unit as keyof typeof durationUnits])
}

/** The end of an error message, which tells a refused caller when to try again. */
export function callAgain(retryAfterMs: number): string {
  const seconds = Math.ceil(retryAfterMs / 1000)
  return `try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}`
}

export const durationText = (ms: number): string =>
  ms < 1_000 ? `${Math.ceil(ms)} ms` : `${Math.round(ms / 100) / 10} s`

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
const longestRetryAfterMs = 86_400_000

/** Reads a Retry-After header: seconds or an HTTP date, up to a day. Undefined if it is missing or invalid. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  const written = value?.trim() ?? ''
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(written)) return Math.min(Math.ceil(Number(written) * 1_000), longestRetryAfterMs)
  const date = Date.parse(written)
  return Number.isNaN(date) ? undefined : Math.min(Math.max(0, date - now), longestRetryAfterMs)
}
