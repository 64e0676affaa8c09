import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, none, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipString, wordsOf } from './skip.ts'

/** How much there is in JSON: the members of all its objects, and how deeply it nests. */
export interface Extent {
  readonly members: number
  readonly depth: number
}

/** Measures the text. The bytes must be JSON. */
export function extentOf(bytes: Buffer): Extent {
  const words = wordsOf(bytes)
  let members = 0
  let open = 0
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === QUOTE) {
      const after = skipString(bytes, words, at + 1)
      if (after === none) break
      at = after - 1
    } else if (byte === COLON) members++
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (++open > depth) depth = open
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) open--
  }
  return { members, depth }
}

/** Counts the members of a value that was parsed: fewer than its text has where a key stood there twice. */
export function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item)
    return count
  }
  for (const key in value) count += 1 + countMembers((value as Record<string, unknown>)[key])
  return count
}
