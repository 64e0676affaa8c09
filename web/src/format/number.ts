const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const fine = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

/** What stands where there is no number. */
export const nothing = '–'

/** `9,412`; from a hundred thousand on `123K`. */
export const count = (number: number): string => (Math.abs(number) < 100_000 ? whole : compact).format(number)

/** All digits, for titles. */
export const exactCount = (number: number): string => whole.format(number)

/** A number per second: `0.02`, `8.3`, `412`. */
export const rate = (number: number): string => (number < 10 ? fine : number < 100_000 ? whole : compact).format(number)

/** A share of a whole, `3.2%`; a dash where there is no whole. */
export const share = (part: number, of: number): string => (of > 0 ? shares.format(part / of) : nothing)

/** A share that is known already, or not. */
export const ratio = (value: number | null): string => (value === null ? nothing : shares.format(value))

/** `1 server`, `3 servers`. */
export const counted = (number: number, thing: string, things = `${thing}s`): string =>
  `${count(number)} ${number === 1 ? thing : things}`
