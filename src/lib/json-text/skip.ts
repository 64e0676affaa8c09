/** Limit for messages: real ones stay under 40, and recursive parsers fail in the thousands. */
export const maxDepth = 256

/*
 * Scanners that skip JSON text without building values: each takes a position and returns the next one, or `none`. They
 * accept what `JSON.parse` accepts, down to numbers, escapes and control characters, but nest no deeper than
 * `maxDepth`. They pass everything as plain arguments, because closures and fields halved the speed.
 */

export const QUOTE = 0x22
export const COLON = 0x3a
export const COMMA = 0x2c
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d
export const OPEN_ARRAY = 0x5b
export const CLOSE_ARRAY = 0x5d
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
const MINUS = 0x2d

/** Returned for invalid JSON. */
export const none = -1

/** Strings are read byte by byte at first; after this many plain bytes, four at a time. */
const near = 16

/** Closing brackets of the open containers. Shared, because skipping a value is synchronous. */
const closers = new Uint8Array(maxDepth)

const noWords = new Int32Array(0)

/** For skipping long strings four bytes at a time. */
export function wordsOf(bytes: Buffer): Int32Array {
  if (bytes.length < 8 * near) return noWords
  const lead = -bytes.byteOffset & 3
  return new Int32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2)
}

/** Skips the rest of a string, from the position after its opening quote. */
export function skipString(bytes: Buffer, words: Int32Array, from: number): number {
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

/** Skips one value that is nested in `outside` containers. */
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
      at = skipSpace(bytes, at)
      const next = at < end ? (bytes[at] as number) : 0
      const closer = closers[depth - 1] as number
      if (next === COMMA) {
        at = skipSpace(bytes, at + 1)
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
  let at = skipString(bytes, words, from + 1)
  if (at === none) return none
  at = skipSpace(bytes, at)
  return at < bytes.length && bytes[at] === COLON ? skipSpace(bytes, at + 1) : none
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
    // Flipping this bit turns a quote into 0x20, right above the control characters; no other byte is that low.
    const low = word ^ 0x02020202
    const backslash = word ^ 0x5c5c5c5c
    // Sets the high bit of each byte that is below the subtracted value.
    const found = ((low - 0x21212121) & ~low) | ((backslash - 0x01010101) & ~backslash)
    if ((found & 0x80808080) !== 0) break
    index++
  }
  return from + ((index - first) << 2)
}

/** Whether these bytes are this name, in quotes and without escapes. */
export function spells(bytes: Buffer, from: number, to: number, name: string): boolean {
  if (to - from !== name.length + 2) return false
  for (let index = 0; index < name.length; index++) {
    if (bytes[from + 1 + index] !== name.charCodeAt(index)) return false
  }
  return true
}
