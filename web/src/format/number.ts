const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const fine = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

/** Placeholder for a missing value. */
export const nothing = '–'

/** `9,412`; compact from 100,000: `123K`. */
export const count = (number: number): string => (Math.abs(number) < 100_000 ? whole : compact).format(number)

/** All digits, for tooltips. */
export const exactCount = (number: number): string => whole.format(number)

/** A rate: `0.02`, `8.3`, `412`. */
export const rate = (number: number): string => (number < 10 ? fine : number < 100_000 ? whole : compact).format(number)

/** `3.2%`; the placeholder if the total is 0. */
export const share = (part: number, of: number): string => (of > 0 ? shares.format(part / of) : nothing)

export const ratio = (value: number | null): string => (value === null ? nothing : shares.format(value))

/** `1 server`, `3 servers`. */
export const counted = (number: number, thing: string, things = `${thing}s`): string =>
  `${count(number)} ${number === 1 ? thing : things}`
