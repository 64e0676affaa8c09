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

/** The number of members in all objects, and the nesting depth. */
export interface Extent {
  readonly members: number
  readonly depth: number
}

/** The bytes must be valid JSON. */
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

export type JsonSpan = readonly [start: number, end: number]

/** Also locates `params` and `params.arguments`, unless their keys contain escapes. */
export interface RequestExtent extends Extent {
  readonly params: JsonSpan | undefined
  readonly arguments: JsonSpan | undefined
  /** No number has 16 digits or an exponent, so doubles hold all of them. */
  readonly exact: boolean
}

/** Scans a request in one pass. The bytes must be a JSON object without duplicate keys. */
export function requestExtent(bytes: Buffer): RequestExtent {
  const words = wordsOf(bytes)
  let members = 0
  let open = 0
  let depth = 0
  /** The last string at a level where `params` or `arguments` can be a key. */
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

function spanOf(bytes: Buffer, from: number, to: number): JsonSpan | undefined {
  if (from === 0 || to === 0) return undefined
  const start = skipSpace(bytes, from)
  let end = to
  while (end > start && (bytes[end - 1] as number) <= 0x20) end--
  return [start, end]
}

/** Counts the members of a parsed value: fewer than its text has if a key was repeated. */
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
