import { retryAfterMs } from '../../lib/retry-after.ts'
/** How long a server asks to be left alone, in milliseconds: in seconds or as a date, as HTTP has it. */
export function waitAskedMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = header('retry-after-ms')
  if (exact !== undefined && /^\d{1,9}$/.test(exact)) return Number(exact)
  return retryAfterMs(header('retry-after'), now)
}
