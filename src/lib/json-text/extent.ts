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
  spells,
  wordsOf,
} from './skip.ts'

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

/** Where something begins in bytes and where it ends. */
export type JsonSpan = readonly [start: number, end: number]

/** The same for a request, with the places of its `params` and of their `arguments`, where they are spelt plainly. */
export interface RequestExtent extends Extent {
  readonly params: JsonSpan | undefined
  readonly arguments: JsonSpan | undefined
  /** No number in it has 16 digits or an exponent: a double holds all of them. */
  readonly exact: boolean
}

/** Measures a request in one pass. The bytes must be a JSON object in which no key occurs twice. */
export function requestExtent(bytes: Buffer): RequestExtent {
  const words = wordsOf(bytes)
  let members = 0
  let open = 0
  let depth = 0
  /** The last string at the level of a name that matters. */
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
      if (open === 1 && spells(bytes, key, keyEnd, 'params')) params = at + 1
      else if (open === 2 && params > 0 && paramsEnd === 0 && spells(bytes, key, keyEnd, 'arguments')) args = at + 1
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

/** Without the white space around it. */
function spanOf(bytes: Buffer, from: number, to: number): JsonSpan | undefined {
  if (from === 0 || to === 0) return undefined
  const start = skipSpace(bytes, from)
  let end = to
  while (end > start && (bytes[end - 1] as number) <= 0x20) end--
  return [start, end]
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
