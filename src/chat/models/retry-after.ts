/** How long a server asks to be left alone, in milliseconds: in seconds or as a date, as HTTP has it. */
export function retryAfterMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = header('retry-after-ms')
  if (exact !== undefined && /^\d{1,9}$/.test(exact)) return Number(exact)
  const value = header('retry-after')
  if (value === undefined) return undefined
  if (/^\d{1,7}(?:\.\d{1,6})?$/.test(value)) return Math.ceil(Number(value) * 1000)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
