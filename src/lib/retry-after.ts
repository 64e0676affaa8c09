/** Reads a Retry-After header: seconds or an HTTP date. Undefined if it is missing or invalid. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  const written = value?.trim() ?? ''
  if (/^\d{1,9}(?:\.\d{1,6})?$/.test(written)) return Math.ceil(Number(written) * 1_000)
  const date = Date.parse(written)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
