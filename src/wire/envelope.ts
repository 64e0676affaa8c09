import {
  CLOSE_OBJECT,
  COLON,
  COMMA,
  none,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  spells,
  wordsOf,
} from '../core/json-text/skip.ts'
import { misspelling } from './check-members.ts'
import { envelopeMembers } from './defined-members.ts'

/** The members of a JSON-RPC message, as slices of it, and what those of its result tell. */
export interface Envelope {
  jsonrpc?: Buffer
  id?: Buffer
  method?: Buffer
  params?: Buffer
  result?: Buffer
  error?: Buffer
  /** A member that another parser may take for one of these, and which one. */
  misspelt?: { readonly name: string; readonly known: string }
  readonly notes: Notes
}

/** What the members of a result tell about it, noted on the way, so that nobody has to read it once more. */
export interface Notes {
  /** The value of `isError`, as `JSON.parse` would give it. */
  isError: boolean
  /** It has a member by which eras differ, that asks for more or starts a task; or one whose name is spelt oddly. */
  special: boolean
}

type Name = Exclude<keyof Envelope, 'notes' | 'misspelt'>

const isName = (key: string): key is Name => (names as readonly string[]).includes(key)

const decoded = (bytes: Buffer, from: number, to: number): string => JSON.parse(bytes.toString('utf8', from, to))

const names: readonly Name[] = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']

/** The members of results that call for a second look. */
const special: readonly string[] = ['resultType', 'ttlMs', 'cacheScope', 'task', 'requestState', 'inputRequests']

const BACKSLASH = 0x5c
const TRUE = 0x74

/**
 * Finds the members of a message without building anything; `undefined` for what `members` would refuse. Each message
 * comes by here twice, once in each direction, so that names are compared in place instead of being read.
 */
export function readEnvelope(bytes: Buffer): Envelope | undefined {
  const words = wordsOf(bytes)
  const found: Envelope = { notes: { isError: false, special: false } }
  let others: Set<string> | undefined
  const end = eachMember(bytes, words, skipSpace(bytes, 0), (from, to, start) => {
    const key = names.find((name) => spells(bytes, from, to, name)) ?? decoded(bytes, from, to)
    const isResult = key === 'result' && bytes[start] === OPEN_OBJECT
    const after = isResult ? skipResult(bytes, words, start, found.notes) : skipValue(bytes, words, start, 1)
    if (after === none || others?.has(key)) return none
    if (!isName(key)) {
      others = (others ?? new Set()).add(key)
      const known = misspelling(key, envelopeMembers)
      if (known !== undefined) found.misspelt ??= { name: key, known }
    } else if (found[key] === undefined) found[key] = bytes.subarray(start, after)
    else return none
    return after
  })
  return end !== none && skipSpace(bytes, end) === bytes.length ? found : undefined
}

function skipResult(bytes: Buffer, words: Int32Array, from: number, notes: Notes): number {
  return eachMember(bytes, words, from, (keyStart, keyEnd, start) => {
    const odd = hasEscape(bytes, keyStart, keyEnd)
    const isError = odd ? decoded(bytes, keyStart, keyEnd) === 'isError' : spells(bytes, keyStart, keyEnd, 'isError')
    if (isError) notes.isError = bytes[start] === TRUE
    if (odd || special.some((name) => spells(bytes, keyStart, keyEnd, name))) notes.special = true
    return skipValue(bytes, words, start, 2)
  })
}

function hasEscape(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

/**
 * Steps over an object. `skip` hears where each key starts and ends, quotes included, and where its value starts; it
 * says where the value ends, or `none`.
 */
function eachMember(
  bytes: Buffer,
  words: Int32Array,
  from: number,
  skip: (keyStart: number, keyEnd: number, start: number) => number,
): number {
  if (bytes[from] !== OPEN_OBJECT) return none
  let at = skipSpace(bytes, from + 1)
  if (bytes[at] === CLOSE_OBJECT) return at + 1
  for (;;) {
    if (bytes[at] !== QUOTE) return none
    const keyEnd = skipString(bytes, words, at + 1)
    if (keyEnd === none) return none
    const colon = skipSpace(bytes, keyEnd)
    if (bytes[colon] !== COLON) return none
    const end = skip(at, keyEnd, skipSpace(bytes, colon + 1))
    if (end === none) return none
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_OBJECT) return at + 1
    if (bytes[at] !== COMMA) return none
    at = skipSpace(bytes, at + 1)
  }
}
