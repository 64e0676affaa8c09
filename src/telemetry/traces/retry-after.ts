/** Longer nobody is believed who asks us to wait. */
const longestMs = 5 * 60_000

/** How long a receiver wants us to wait: a number of seconds, or a date. */
export function retryAfterMs(value: string | undefined, now: number): number {
  if (value === undefined) return 0
  const seconds = /^\d{1,9}$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - now
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), longestMs)
}
