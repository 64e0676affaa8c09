import { jsonValue } from './parse-json.ts'

/** The maximum nesting of messages. Real ones have fewer than 40 levels; recursive parsers fail at thousands. */
export const maxDepth = 256

const SPACE = 0x20
const QUOTE = 0x22
const COLON = 0x3a
export const COMMA = 0x2c
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d
export const OPEN_ARRAY = 0x5b
export const CLOSE_ARRAY = 0x5d
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
const MINUS = 0x2d

/** The position that scanners return for invalid JSON. */
export const none = -1

/** How many bytes of a string are read one by one before the rest is read four bytes at a time. */
const near = 16

/** The closing brackets of the open containers. One array serves all calls, because skipping is synchronous. */
const closers = new Uint8Array(maxDepth)

const noWords = new Int32Array(0)

/**
 * Finds the top-level members of one JSON object: keys are decoded, values are slices of the text. Undefined for
 * anything that `JSON.parse` would refuse, that is not an object, that nests deeper than `maxDepth`, or that repeats a
 * top-level key: attackers could bypass checks if two parsers disagree on which of the values counts. With `only`,
 * ignores all other keys, because an object may have millions of them.
 */
export function members(bytes: Buffer, only?: readonly string[]): ReadonlyMap<string, Buffer> | undefined {
  const found = new Map<string, Buffer>()
  const whole = walk(bytes, (key, start, end) => {
    if (only && !only.includes(key)) return true
    if (found.has(key)) return false
    found.set(key, bytes.subarray(start, end))
    return true
  })
  return whole ? found : undefined
}

/**
 * Finds the elements of one JSON array, as slices; undefined for anything else, as with `members`. Also returns
 * undefined for more than `max` elements, because a slice takes a hundred times the memory of a one-digit element.
 */
export function elements(bytes: Buffer, max = Number.POSITIVE_INFINITY): Buffer[] | undefined {
  const found: Buffer[] = []
  const whole = eachElement(bytes, (start, end) => {
    if (found.length === max) return false
    found.push(bytes.subarray(start, end))
    return true
  })
  return whole ? found : undefined
}

/** Visits each element until `visit` returns false. Returns whether all elements of one JSON array were visited. */
export function eachElement(bytes: Buffer, visit: (start: number, end: number) => boolean): boolean {
  const words = wordsOf(bytes)
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== OPEN_ARRAY) return false
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === CLOSE_ARRAY) return skipSpace(bytes, at + 1) === bytes.length
  for (;;) {
    const end = skipValue(bytes, words, at, 1)
    if (end === none || !visit(at, end)) return false
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_ARRAY) return skipSpace(bytes, at + 1) === bytes.length
    if (bytes[at] !== COMMA) return false
    at = skipSpace(bytes, at + 1)
  }
}

/** Whether the bytes are exactly one JSON value that nests no deeper than `maxDepth`. */
export function isJson(bytes: Buffer): boolean {
  const at = skipValue(bytes, wordsOf(bytes), skipSpace(bytes, 0), 0)
  return at !== none && skipSpace(bytes, at) === bytes.length
}

/** Whether brackets nest deeper than `limit`. Accepts any bytes, not only JSON. */
export function depthExceeds(bytes: Buffer, limit: number): boolean {
  const words = wordsOf(bytes)
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) return false
      at = after - 1
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (++depth > limit) return true
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--
  }
  return false
}

/** A top-level member that is a number of a few digits, in JSON of any depth; undefined if there is none. */
export function integerMember(bytes: Buffer, name: string): number | undefined {
  const words = wordsOf(bytes)
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) return undefined
      const colon = depth === 1 && spells(bytes, at, after, name) ? skipSpace(bytes, after) : none
      if (colon !== none && bytes[colon] === COLON) {
        const digits = /^\s*(\d{1,15})\s*[,}]/.exec(bytes.toString('latin1', colon + 1, colon + 40))
        return digits ? Number(digits[1]) : undefined
      }
      at = after - 1
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--
  }
  return undefined
}

/** Visits each member until `visit` returns false. Returns whether all members of one JSON object were visited. */
export function walk(
  bytes: Buffer,
  visit: (key: string, start: number, end: number, keyStart: number) => boolean,
): boolean {
  const words = wordsOf(bytes)
  const end = eachMember(bytes, words, skipSpace(bytes, 0), (keyStart, keyEnd, start) => {
    const after = skipValue(bytes, words, start, 1)
    return after !== none && visit(keyText(bytes, keyStart, keyEnd), start, after, keyStart) ? after : none
  })
  return end !== none && skipSpace(bytes, end) === bytes.length
}

/**
 * Scans an object. `skip` receives the start and end of each key, quotes included, and the start of its value; it
 * returns the end of the value, or `none`.
 */
export function eachMember(
  bytes: Buffer,
  words: Int32Array,
  from: number,
  skip: (keyStart: number, keyEnd: number, start: number) => number,
): number {
  const { length } = bytes
  if (bytes[from] !== OPEN_OBJECT) return none
  let at = skipSpace(bytes, from + 1)
  if (bytes[at] === CLOSE_OBJECT) return at + 1
  for (;;) {
    if (bytes[at] !== QUOTE) return none
    const keyEnd = skipString(bytes, words, at + 1)
    if (keyEnd === none) return none
    const start = skipColon(bytes, keyEnd)
    if (start === none) return none
    at = skip(at, keyEnd, start)
    if (at === none) return none
    if (at < length && (bytes[at] as number) <= SPACE) at = skipSpace(bytes, at)
    if (at >= length) return none
    if (bytes[at] === CLOSE_OBJECT) return at + 1
    if (bytes[at++] !== COMMA) return none
    if (at < length && (bytes[at] as number) <= SPACE) at = skipSpace(bytes, at)
  }
}

function keyText(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from + 1, to - 1)
  return text.includes('\\') ? (jsonValue(`"${text}"`) as string) : text
}

/**
 * Whether JSON text has more than `max` values, counting members, elements and the outermost value. Only scans the
 * text, so that expensive input is detected before it is parsed. In invalid JSON, counts only up to where a parser
 * would stop. An empty container counts as two values.
 */
export const hasMoreValues = (bytes: Buffer, max: number): boolean =>
  // Every value takes at least one byte, so text of at most `max` bytes cannot have more values.
  bytes.length > max && countValues(bytes, max) > max

/** Counts the values in JSON text as `hasMoreValues` does; stops counting above `max`. */
export function countValues(bytes: Buffer, max = Number.POSITIVE_INFINITY): number {
  const words = wordsOf(bytes)
  let values = 1
  for (let at = 0; at < bytes.length && values <= max; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) break
      at = after - 1
    } else if (byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT) values++
  }
  return values
}

export type JsonSpan = readonly [start: number, end: number]

/** The size of JSON text and, in a request, the positions of `params` and `params.arguments` whose keys have no escapes. */
interface JsonExtent {
  /** The members of all objects. */
  readonly members: number
  /** How deeply the text is nested. */
  readonly depth: number
  readonly params: JsonSpan | undefined
  readonly arguments: JsonSpan | undefined
  /** Whether doubles hold all numbers exactly: none has an exponent, or 16 or more digits. */
  readonly exact: boolean
}

/** Scans valid JSON in one pass. */
export function extentOf(bytes: Buffer): JsonExtent {
  const words = wordsOf(bytes)
  let members = 0
  let open = 0
  let depth = 0
  /** The last string found at a level where `params` or `arguments` can be a key. */
  let key = 0
  let keyEnd = 0
  let params = 0
  let paramsEnd = 0
  let args = 0
  let argsEnd = 0
  let digits = 0
  let exact = true
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) break
      if (open <= 2) {
        key = at
        keyEnd = after
      }
      at = after - 1
    } else if (byte === COLON) {
      members++
      const length = keyEnd - key
      if (open === 1 && length === 8 && spells(bytes, key, keyEnd, 'params')) params = at + 1
      else if (open === 2 && params > 0 && paramsEnd === 0 && length === 11 && spells(bytes, key, keyEnd, 'arguments'))
        args = at + 1
    } else if (byte === COMMA) {
      digits = 0
      if (open === 1 && params > 0 && paramsEnd === 0) paramsEnd = at
      else if (open === 2 && args > 0 && argsEnd === 0) argsEnd = at
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (++open > depth) depth = open
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      open--
      if (open === 1 && args > 0 && argsEnd === 0) argsEnd = at
      else if (open === 0 && params > 0 && paramsEnd === 0) paramsEnd = at
    } else if ((byte >= 0x30 && byte <= 0x39) || byte === 0x2e) {
      if (++digits === 16) exact = false
    } else if (digits > 0 && (byte | 0x20) === 0x65) exact = false
  }
  return { members, depth, params: spanOf(bytes, params, paramsEnd), arguments: spanOf(bytes, args, argsEnd), exact }
}

function spanOf(bytes: Buffer, from: number, to: number): JsonSpan | undefined {
  if (from === 0 || to === 0) return undefined
  const start = (bytes[from] as number) > SPACE ? from : skipSpace(bytes, from)
  let end = to
  while (end > start && (bytes[end - 1] as number) <= SPACE) end--
  return [start, end]
}

/** Counts the members of a parsed value. If its text repeats a key, the text has more members than the value. */
export function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item)
    return count
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key]
    count += typeof member === 'object' ? 1 + countMembers(member) : 1
  }
  return count
}

/** Whether an object in valid JSON repeats a key. `value` is the parsed JSON, which then lacks a member. */
export const repeatsKey = (bytes: Buffer, value: unknown): boolean => extentOf(bytes).members !== countMembers(value)

/*
 * Scanners that skip JSON text without building values: each takes a position and returns the next one, or `none`. They
 * accept exactly what `JSON.parse` accepts, including its rules for numbers, escapes and control characters, but at
 * most `maxDepth` levels of nesting. They pass everything as plain arguments, because closures and fields halved the
 * speed.
 */

/** A view of the bytes as 32-bit words, for skipping long strings four bytes at a time. */
export function wordsOf(bytes: Buffer): Int32Array {
  if (bytes.length < 8 * near) return noWords
  const lead = -bytes.byteOffset & 3
  return new Int32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2)
}

/** Skips the rest of a string, from the position after its opening quote. */
function skipString(bytes: Buffer, words: Int32Array, from: number): number {
  const end = bytes.length
  let at = from
  let look = at + near
  while (at < end) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) {
      const length = escapeLength(bytes, at)
      if (length === 0) return none
      at += length
      look = at + near
    } else if (byte < 0x20) return none
    else if (++at >= look && ((bytes.byteOffset + at) & 3) === 0) {
      at = skipPlain(bytes, words, at)
      look = at + near
    }
  }
  return none
}

/** Skips one value; `outside` is the number of containers around it. */
export function skipValue(bytes: Buffer, words: Int32Array, from: number, outside: number): number {
  const end = bytes.length
  let at = from
  let depth = outside
  for (;;) {
    const byte = at < end ? (bytes[at] as number) : 0
    if (byte === QUOTE) {
      at = skipString(bytes, words, at + 1)
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (depth === maxDepth) return none
      const closer = byte + 2
      at = skipSpace(bytes, at + 1)
      if (at < end && bytes[at] === closer) at++
      else {
        closers[depth++] = closer
        if (byte === OPEN_OBJECT) at = skipKey(bytes, words, at)
        if (at === none) return none
        continue
      }
    } else at = skipScalar(bytes, at, byte)
    if (at === none) return none

    for (;;) {
      if (depth === outside) return at
      let next = at < end ? (bytes[at] as number) : 0
      if (next !== 0 && next <= SPACE) {
        at = skipSpace(bytes, at)
        next = at < end ? (bytes[at] as number) : 0
      }
      const closer = closers[depth - 1] as number
      if (next === COMMA) {
        at++
        if (at < end && (bytes[at] as number) <= SPACE) at = skipSpace(bytes, at)
        if (closer === CLOSE_OBJECT) at = skipKey(bytes, words, at)
        if (at === none) return none
        break
      }
      if (next !== closer) return none
      at++
      depth--
    }
  }
}

export function skipSpace(bytes: Buffer, from: number): number {
  const end = bytes.length
  let at = from
  while (at < end) {
    const byte = bytes[at] as number
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break
    at++
  }
  return at
}

/** Skips a key, its colon and the space before its value. */
function skipKey(bytes: Buffer, words: Int32Array, from: number): number {
  if (from >= bytes.length || bytes[from] !== QUOTE) return none
  const at = skipString(bytes, words, from + 1)
  return at === none ? none : skipColon(bytes, at)
}

/** Skips the colon after a key, and the space around it. */
function skipColon(bytes: Buffer, from: number): number {
  let at = bytes[from] === COLON ? from : skipSpace(bytes, from)
  if (bytes[at++] !== COLON) return none
  if (at < bytes.length && (bytes[at] as number) <= SPACE) at = skipSpace(bytes, at)
  return at
}

function skipScalar(bytes: Buffer, at: number, first: number): number {
  if (first === 0x74) return skipWord(bytes, at, 'true')
  if (first === 0x66) return skipWord(bytes, at, 'false')
  if (first === 0x6e) return skipWord(bytes, at, 'null')
  return skipNumber(bytes, at)
}

function skipWord(bytes: Buffer, from: number, expected: string): number {
  if (from + expected.length > bytes.length) return none
  for (let index = 0; index < expected.length; index++) {
    if (bytes[from + index] !== expected.charCodeAt(index)) return none
  }
  return from + expected.length
}

function skipNumber(bytes: Buffer, from: number): number {
  const end = bytes.length
  let at = from < end && bytes[from] === MINUS ? from + 1 : from
  at = at < end && bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at)
  if (at === none || at >= end) return at
  if (bytes[at] === 0x2e) at = skipDigits(bytes, at + 1)
  if (at === none || at >= end || ((bytes[at] as number) | 0x20) !== 0x65) return at
  const sign = at + 1 < end ? bytes[at + 1] : 0
  return skipDigits(bytes, sign === 0x2b || sign === MINUS ? at + 2 : at + 1)
}

function skipDigits(bytes: Buffer, from: number): number {
  const end = bytes.length
  let at = from
  while (at < end && (bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at++
  return at === from ? none : at
}

/** The length of the escape at this position; 0 if it is invalid. */
function escapeLength(bytes: Buffer, at: number): number {
  if (at + 1 >= bytes.length) return 0
  switch (bytes[at + 1]) {
    case 0x6e: // n
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x72: // r
    case 0x74: // t
      return 2
    case 0x75: // u
      if (at + 6 > bytes.length) return 0
      for (let index = at + 2; index < at + 6; index++) if (!isHex(bytes[index] as number)) return 0
      return 6
    default:
      return 0
  }
}

const isHex = (byte: number): boolean =>
  (byte >= ZERO && byte <= NINE) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)

/** Skips whole words without quotes, backslashes or control characters; `from` must be aligned. */
function skipPlain(bytes: Buffer, words: Int32Array, from: number): number {
  const count = words.length
  const first = (from - (-bytes.byteOffset & 3)) >> 2
  let index = first
  while (index < count) {
    const word = words[index] as number
    // Flipping this bit turns a quote into 0x20, so that only control characters and quotes are below 0x21.
    const low = word ^ 0x02020202
    const backslash = word ^ 0x5c5c5c5c
    // Sets the high bit of each byte that is below the value subtracted from it.
    const found = ((low - 0x21212121) & ~low) | ((backslash - 0x01010101) & ~backslash)
    if ((found & 0x80808080) !== 0) break
    index++
  }
  return from + ((index - first) << 2)
}

/** Whether the bytes from `from` to `to` are this name in quotes, without escapes. */
export function spells(bytes: Buffer, from: number, to: number, name: string): boolean {
  if (to - from !== name.length + 2) return false
  for (let index = 0; index < name.length; index++) {
    if (bytes[from + 1 + index] !== name.charCodeAt(index)) return false
  }
  return true
}
