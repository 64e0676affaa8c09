/** Converts a JSON number. `source` is how it was written, `value` the nearest double. */
export type ReadNumber = (source: string, value: number) => unknown

/**
 * Parses JSON. Use it instead of `JSON.parse`, which has a bug in Node 24 and 26: for a member name with an escape, it may
 * return a different name from an earlier text (https://github.com/nodejs/node/issues/63785). A caller could use this to
 * hide an argument from the policy. `readNumber` replaces each number.
 */
export function jsonValue(text: string, readNumber?: ReadNumber): unknown {
  if (!text.includes('\\') || !escapedName.test(text)) {
    return readNumber ? JSON.parse(text, reviver(readNumber)) : JSON.parse(text)
  }
  // Invalid JSON throws here; what follows can rely on the syntax.
  JSON.parse(text)
  return readValid(text, readNumber ?? ((_, value) => value))
}

/** The same, but undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return jsonValue(text)
  } catch {
    return undefined
  }
}

/**
 * Replaces lone surrogates in text from `JSON.stringify` by U+FFFD. Other parsers than JavaScript's reject the whole text for
 * one lone surrogate.
 */
export function wellFormedJson(text: string): string {
  if (!text.includes('\\ud')) return text
  // `JSON.stringify` escapes only lone surrogates. Match all escapes, because `\\ud83d` is an escaped backslash and text.
  return text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|.)/g, (written, lone) => (lone === undefined ? written : '\ufffd'))
}

/** Matches all member names with an escape, and some other strings, which only costs time. */
const escapedName = /[{,][ \t\r\n]*"[^"\\]*\\/

const reviver = (readNumber: ReadNumber) =>
  ((_key: string, value: unknown, { source }: { readonly source?: string }) =>
    typeof value === 'number' && source !== undefined ? readNumber(source, value) : value) as (
    key: string,
    value: unknown,
  ) => unknown

interface Container {
  readonly value: unknown[] | Record<string, unknown>
  /** The name of the member whose value comes next. */
  name: string | undefined
}

/** Reads valid JSON without recursion, as `JSON.parse` does: text can be nested deeper than the stack allows. */
function readValid(text: string, readNumber: ReadNumber): unknown {
  let root: unknown
  let current: Container | undefined
  const parents: (Container | undefined)[] = []
  const add = (value: unknown) => {
    if (current === undefined) root = value
    else if (Array.isArray(current.value)) current.value.push(value)
    else {
      setMember(current.value, current.name as string, value)
      current.name = undefined
    }
  }
  for (let at = 0; at < text.length; ) {
    const start = at
    switch (text[at]) {
      case '{':
      case '[': {
        const value = text[at] === '{' ? {} : []
        add(value)
        parents.push(current)
        current = { value, name: undefined }
        at++
        break
      }
      case '}':
      case ']':
        current = parents.pop()
        at++
        break
      case '"': {
        at = endOfString(text, start)
        const string: string = JSON.parse(text.slice(start, at))
        const isName = current && !Array.isArray(current.value) && current.name === undefined
        if (current && isName) current.name = string
        else add(string)
        break
      }
      case ' ':
      case '\t':
      case '\r':
      case '\n':
      case ',':
      case ':':
        at++
        break
      default: {
        at = endOfLiteral(text, start)
        const source = text.slice(start, at)
        const value: unknown = JSON.parse(source)
        add(typeof value === 'number' ? readNumber(source, value) : value)
      }
    }
  }
  return root
}

/** Assigning `__proto__` would set the prototype. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function endOfString(text: string, start: number): number {
  let at = start
  do at = text.indexOf('"', at + 1)
  while (isEscaped(text, at))
  return at + 1
}

/** Whether an odd number of backslashes comes before this position. */
function isEscaped(text: string, at: number): boolean {
  let before = at
  while (text[before - 1] === '\\') before--
  return (at - before) % 2 === 1
}

function endOfLiteral(text: string, start: number): number {
  const rest = /[,\]} \t\r\n]|$/g
  rest.lastIndex = start
  return rest.exec(text)?.index ?? text.length
}

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
