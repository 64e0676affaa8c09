import { notLoaded, noValue } from './number.ts'

const oneDecimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const twoDecimals = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** Formats a short duration: `0.4 ms`, `42 ms`, `1.25 s`, `2 min 5 s`. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === undefined) return notLoaded
  if (ms === null) return noValue
  if (ms < 1) return `${twoDecimals.format(ms)} ms`
  if (ms < 10) return `${oneDecimal.format(ms)} ms`
  if (ms < 999.5) return `${whole.format(ms)} ms`
  if (ms < 59_995) return `${twoDecimals.format(ms / 1000)} s`
  return formatLongDuration(ms)
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** Formats a long duration in its two largest units: `3 d 4 h`, `12 min 9 s`, `0 s`. */
export function formatLongDuration(ms: number): string {
  const rounded = Math.max(0, Math.round(ms / 1000) * 1000)
  const first = units.findIndex(([, length]) => rounded >= length)
  if (first < 0) return '0 s'
  let rest = rounded
  const parts: string[] = []
  for (const [unit, length] of units.slice(first, first + 2)) {
    const number = Math.floor(rest / length)
    rest -= number * length
    if (number > 0) parts.push(`${number} ${unit}`)
  }
  return parts.join(' ')
}

/** Formats the rest of a period: `4 min 59 s left`. Before the period begins, which a late clock may say, all of it is left. */
export const formatTimeLeft = (
  { from, until }: { readonly from: number; readonly until: number },
  now: number,
): string => `${formatLongDuration(until - Math.max(from, now))} left`
