const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const twoDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

/** Placeholder for a missing value. */
export const noValue = '–'

/** `9,412`; compact from 100,000: `123K`. */
export const formatCount = (number: number): string => (Math.abs(number) < 100_000 ? whole : compact).format(number)

/** All digits, for tooltips. */
export const formatExactCount = (number: number): string => whole.format(number)

/** A rate: `0.02`, `8.3`, `412`. */
export const formatRate = (number: number): string =>
  (number < 10 ? twoDigits : number < 100_000 ? whole : compact).format(number)

/** `3.2%`; the placeholder if the total is 0. */
export const formatShare = (part: number, total: number): string => (total > 0 ? percent.format(part / total) : noValue)

export const formatRatio = (value: number | null): string => (value === null ? noValue : percent.format(value))

/** `1 server`, `3 servers`. */
export const pluralize = (number: number, thing: string, things = `${thing}s`): string =>
  `${formatCount(number)} ${number === 1 ? thing : things}`
