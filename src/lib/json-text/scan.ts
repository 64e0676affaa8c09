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

/** The top-level members of a JSON object: decoded keys, and values as slices. */
export type Members = ReadonlyMap<string, Buffer>

/**
 * Finds the members of one JSON object without building their values. Undefined for anything that `JSON.parse` would
 * refuse, that is not an object, that nests deeper than `maxDepth`, or that repeats a top-level key: parsers that
 * disagree on which one counts let attackers bypass checks.
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
 * Finds the elements of one JSON array, as slices; undefined for anything else, as with `members`. Stops with undefined
 * after `most`: a slice is a hundred times as large as a one-digit element.
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

/** Visits each member until the visitor returns false. True if the bytes are one object and all of it was visited. */
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
 * Whether JSON text has more than `max` values: members, elements and the value itself. Reads only the text, so that
 * expensive input is found before it is parsed. In invalid JSON, it counts up to where a parser would stop. An empty
 * container counts as two.
 */
export function hasMoreValues(bytes: Buffer, max: number): boolean {
  // Every value takes at least one byte.
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
