/** A number in the digits it was written in, where no double has exactly that value. */
export class Numeral {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** `JSON.stringify` writes the digits as they are. */
  toJSON(): unknown {
    return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(this.source)
  }
}

/** A number of 16 digits or with an exponent: shorter ones are exact. Texts that look alike only cost a second look. */
const long = /[0-9.]{16}|[0-9.][eE][+-]?[0-9]/

/** Parses JSON; numbers that a double would round become `Numeral`s. */
export function parseExactly(text: string): unknown {
  return long.test(text) ? JSON.parse(text, revive as (key: string, value: unknown) => unknown) : JSON.parse(text)
}

/** The same where the text was parsed already: the given value, unless a number in it was rounded. */
export function exactValue<T>(bytes: Buffer, value: T): T {
  const text = bytes.toString('latin1')
  return long.test(text) ? (parseExactly(bytes.toString('utf8')) as T) : value
}

const revive = (_key: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === 'number' && source !== undefined && decimalForm(source) !== decimalForm(`${value}`)
    ? new Numeral(source)
    : value

/** The same text for all ways to write one number: its digits without zeros around them, and the power of ten. */
export function decimalForm(source: string): string {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  if (whole === undefined) return source
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(power) - fraction.length + digits.length - significant.length}`
}
