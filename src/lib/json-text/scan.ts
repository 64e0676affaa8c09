import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  none,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  wordsOf,
} from './skip.ts'

/** The top-level members of a JSON object: each key, decoded, with the bytes of its value, which are slices. */
export type Members = ReadonlyMap<string, Buffer>

/**
 * Finds the members of one JSON object without building their values. `undefined` for anything that `JSON.parse`
 * would refuse, that is not an object, that nests deeper than `maxDepth`, or that has a top-level key twice:
 * two parsers that disagree about which one counts are how checks are got round.
 */
export function members(bytes: Buffer): Members | undefined {
  const found = new Map<string, Buffer>()
  const whole = walk(bytes, (key, start, end) => {
    if (found.has(key)) return false
    found.set(key, bytes.subarray(start, end))
    return true
  })
  return whole ? found : undefined
}

/**
 * Finds the elements of one JSON array, as slices; `undefined` for anything else, as with `members`, and for one that
 * has more than `most`, of which no more is read: a slice is a hundred times as large as the digit that it may hold.
 */
export function elements(bytes: Buffer, most = Number.POSITIVE_INFINITY): Buffer[] | undefined {
  const words = wordsOf(bytes)
  const found: Buffer[] = []
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== OPEN_ARRAY) return undefined
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === CLOSE_ARRAY) return skipSpace(bytes, at + 1) === bytes.length ? found : undefined
  for (;;) {
    const end = skipValue(bytes, words, at, 1)
    if (end === none || found.length === most) return undefined
    found.push(bytes.subarray(at, end))
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_ARRAY) return skipSpace(bytes, at + 1) === bytes.length ? found : undefined
    if (bytes[at] !== COMMA) return undefined
    at = skipSpace(bytes, at + 1)
  }
}

/** Whether the bytes are exactly one JSON value that nests no deeper than `maxDepth`. */
export function isJson(bytes: Buffer): boolean {
  const at = skipValue(bytes, wordsOf(bytes), skipSpace(bytes, 0), 0)
  return at !== none && skipSpace(bytes, at) === bytes.length
}

/** Whether brackets nest deeper than this. Works on any bytes, also where they are not JSON. */
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

/**
 * Visits each member, as its key, where its value starts and ends, and where its key starts, until the visitor says
 * false; true if the bytes are one object and all of it was visited.
 */
export function walk(
  bytes: Buffer,
  visit: (key: string, start: number, end: number, keyStart: number) => boolean,
): boolean {
  const words = wordsOf(bytes)
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== OPEN_OBJECT) return false
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === CLOSE_OBJECT) return skipSpace(bytes, at + 1) === bytes.length
  for (;;) {
    const from = at
    if (bytes[at] !== QUOTE) return false
    const keyEnd = skipString(bytes, words, at + 1)
    if (keyEnd === none) return false
    at = skipSpace(bytes, keyEnd)
    if (bytes[at] !== COLON) return false
    const start = skipSpace(bytes, at + 1)
    const end = skipValue(bytes, words, start, 1)
    if (end === none || !visit(keyText(bytes, from, keyEnd), start, end, from)) return false
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_OBJECT) return skipSpace(bytes, at + 1) === bytes.length
    if (bytes[at] !== COMMA) return false
    at = skipSpace(bytes, at + 1)
  }
}

function keyText(bytes: Buffer, from: number, to: number): string {
  const text = bytes.toString('utf8', from + 1, to - 1)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/**
 * Whether JSON text has more than `max` values: members of objects, elements of arrays, and the value itself. It looks at
 * the text alone, so that what takes long to parse is found out before it is parsed. Text that is not JSON is counted up
 * to where a parser would stop. An empty container counts as two.
 */
export function hasMoreValues(bytes: Buffer, max: number): boolean {
  // No value is shorter than one byte.
  if (bytes.length <= max) return false
  const words = wordsOf(bytes)
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) return false
      at = after - 1
    } else if ((byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT) && ++values > max) return true
  }
  return false
}
