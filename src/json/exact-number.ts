import { jsonValue, type ReadNumber } from './parse-json.ts'

/** A number as it was written, for numbers that no double represents exactly. */
export class ExactNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** Makes `JSON.stringify` write the original digits. */
  toJSON(): unknown {
    return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(this.source)
  }
}

/** Matches numbers with 16 digits or an exponent; all others are exact. A false match only costs time. */
const long = /[0-9.]{16}|[0-9.][eE][+-]?[0-9]/

/** Parses JSON; numbers that a double would round become `ExactNumber`s. */
export const parseExactly = (text: string): unknown => jsonValue(text, long.test(text) ? exactNumber : undefined)

/** Returns `value`, which was parsed from these bytes, or an exact version of it if parsing rounded a number. */
export function exactValue<T>(bytes: Buffer, value: T): T {
  if (!long.test(bytes.toString('latin1'))) return value
  let rounded = false
  const exact = jsonValue(bytes.toString('utf8'), (source, given) => {
    const read = exactNumber(source, given)
    if (read !== given) rounded = true
    return read
  })
  return rounded ? (exact as T) : value
}

const exactNumber: ReadNumber = (source, value) =>
  decimalForm(source) === decimalForm(`${value}`) ? value : new ExactNumber(source)

/** `digits` times ten to the `power`, without leading and trailing zeros; zero has no digits. */
export interface Decimal {
  readonly negative: boolean
  readonly digits: string
  readonly power: number
}

/** Parses a JSON number in linear time; undefined for anything else. */
export function decimalOf(source: string): Decimal | undefined {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  if (whole === undefined) return undefined
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (start < end && all[start] === '0') start++
  // Use a loop, because a regular expression for trailing zeros takes quadratic time.
  while (end > start && all[end - 1] === '0') end--
  if (start === end) return { negative: false, digits: '', power: 0 }
  return { negative: sign === '-', digits: all.slice(start, end), power: Number(power) + whole.length - end }
}

/** Text that is the same for all spellings of one number. */
export function decimalForm(source: string): string {
  const decimal = decimalOf(source)
  if (decimal === undefined) return source
  const { negative, digits, power } = decimal
  return digits === '' ? '0' : `${negative ? '-' : ''}${digits}e${power}`
}
