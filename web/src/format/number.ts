import { showDirections } from './show-directions.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const twoDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

/** The placeholder for a missing value. */
export const noValue = '–'

/** Formats a count: `9,412`, or `123K` from 100,000 on. */
export const formatCount = (number: number): string => (Math.abs(number) < 100_000 ? whole : compact).format(number)

/** Formats a count with all digits, for tooltips. */
export const formatExactCount = (number: number): string => whole.format(number)

interface Progress {
  readonly progress: number | null
  readonly total: number | null
  readonly message: string | null
}

/** Formats a progress notification: `2 of 4 Reading`. While a call waits, Toolway reports values near 0 to be left out. */
export function formatProgress({ progress, total, message }: Progress): string {
  const isWaiting = progress !== null && progress < 0.01 && total === null && message !== null
  const amount = progress === null || isWaiting ? '' : `${progress}${total === null ? '' : ` of ${total}`}`
  return [amount, message && showDirections(message)].filter(Boolean).join(' ')
}

const units = ['B', 'KiB', 'MiB', 'GiB'] as const

/** Formats a number of bytes: `512 B`, `47 KiB`, `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1]
  return `${(value < 10 ? twoDigits : whole).format(value)} ${units[unit]}`
}

/** Budgets in bytes whose names do not end in `_bytes`. */
const byteBudgets: ReadonlySet<string> = new Set(['capture', 'history_shared'])

/** Formats an amount of a budget: bytes or a count. */
export const formatBudget = (name: string, amount: number): string =>
  name.endsWith('_bytes') || byteBudgets.has(name) ? formatBytes(amount) : formatCount(amount)

/** Formats a rate: `0.02`, `8.3`, `412`. */
export const formatRate = (number: number): string =>
  (number < 10 ? twoDigits : number < 100_000 ? whole : compact).format(number)

/** Formats a share: `3.2%`, or the placeholder if the total is 0. */
export const formatShare = (part: number, total: number): string => (total > 0 ? percent.format(part / total) : noValue)

export const formatRatio = (value: number | null): string => (value === null ? noValue : percent.format(value))

/** Formats a number with a noun: `1 server`, `3 servers`. */
export const pluralize = (number: number, thing: string, things = `${thing}s`): string =>
  `${formatCount(number)} ${number === 1 ? thing : things}`
