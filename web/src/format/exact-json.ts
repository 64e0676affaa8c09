/** A number as it was written, because JavaScript would round it. */
export class ExactNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }

  /** Makes `JSON.stringify` write the original digits. */
  toJSON(): unknown {
    return rawJson?.(this.source) ?? Number(this.source)
  }

  toString(): string {
    return this.source
  }
}

/** Older browsers lack it. They round numbers. */
const { rawJSON: rawJson } = JSON as { rawJSON?: (text: string) => unknown }

/** Parses a JSON number. */
export const exactNumber = (source: string, value = Number(source)): number | ExactNumber =>
  !rawJson || decimalForm(source) === decimalForm(`${value}`) ? value : new ExactNumber(source)

/** Matches numbers with 16 digits or an exponent; all others are exact. */
const long = /[0-9.]{16}|[0-9.][eE][+-]?[0-9]/

/** Parses JSON; numbers that JavaScript would round become `ExactNumber`s. */
export const parseExactly = (text: string): unknown =>
  long.test(text) ? JSON.parse(text, readNumber as (key: string, value: unknown) => unknown) : JSON.parse(text)

const readNumber = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === 'number' && context?.source !== undefined ? exactNumber(context.source, value) : value

/** Text that is the same for all spellings of one number. */
function decimalForm(source: string): string {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  if (whole === undefined) return source
  const all = (whole + fraction).replace(/^0+/, '')
  let end = all.length
  while (all[end - 1] === '0') end--
  return end === 0 ? '0' : `${sign}${all.slice(0, end)}e${Number(power) - fraction.length + all.length - end}`
}

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g

/** Indents JSON and keeps its numbers as they are written. Any other text is returned unchanged. */
export function indentJson(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  const parts: string[] = []
  let indent = '\n'
  let previous = ''
  for (const [token] of text.matchAll(tokens)) {
    const isEnd = token === '}' || token === ']'
    if (isEnd) indent = indent.slice(0, -2)
    const startsLine = isEnd ? !isOpening(previous) : isOpening(previous) || previous === ','
    if (startsLine) parts.push(indent)
    if (token === ':') parts.push(': ')
    else parts.push(token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token)
    if (isOpening(token)) indent += '  '
    previous = token
  }
  return parts.join('')
}

const isOpening = (token: string): boolean => token === '{' || token === '['
