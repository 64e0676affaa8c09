import { COMMA, none, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipString, wordsOf } from './skip.ts'

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
