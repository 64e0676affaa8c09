import { showDirections } from './show-directions.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const twoDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

/** The placeholder for a missing value. */
export const noValue = '–'

/** The placeholder for a figure that is not loaded yet. All figures are formatted here: none is 0 before it is known. */
export const notLoaded = '…'

const figure =
  (format: (number: number) => string) =>
  (number: number | undefined): string =>
    number === undefined ? notLoaded : format(number)

/** Formats a count: `9,412`, or `123K` from 100,000 on. */
export const formatCount = figure((number) => (Math.abs(number) < 100_000 ? whole : compact).format(number))

/** Formats a count with all digits, for tooltips. */
export const formatExactCount = figure((number) => whole.format(number))

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
export const formatRate = figure((number) =>
  (number < 10 ? twoDigits : number < 100_000 ? whole : compact).format(number),
)

/** A share, or null if the total is 0. */
export const shareOf = (part: number | undefined, total: number | undefined): number | null | undefined =>
  part === undefined || total === undefined ? undefined : total > 0 ? part / total : null

/** Formats a share: `3.2%`, or the placeholder if the total is 0. */
export const formatShare = (part: number | undefined, total: number | undefined): string =>
  formatRatio(shareOf(part, total))

export const formatRatio = (value: number | null | undefined): string =>
  value === null ? noValue : figure((number) => percent.format(number))(value)

/** Formats a number with a noun: `1 server`, `3 servers`. */
export const pluralize = (number: number | undefined, thing: string, things = `${thing}s`): string =>
  `${formatCount(number)} ${number === 1 ? thing : things}`
