import { fixedLimits } from '../core/limits/fixed-limits.ts'
import { Json } from '../json/json.ts'
import {
  CLOSE_ARRAY,
  COMMA,
  depthExceeds,
  eachMember,
  isJson,
  maxDepth,
  members,
  none,
  OPEN_ARRAY,
  OPEN_OBJECT,
  skipSpace,
  skipValue,
  spells,
  wordsOf,
} from '../json/json-text.ts'
import { jsonValue } from '../json/parse-json.ts'
import { hasLineBreak, type Pieces, replaceLineBreaks, toUtf8 } from './bytes.ts'
import { duplicateIn, misspelling } from './check-members.ts'
import { envelopeMembers } from './defined-members.ts'

/** The longest line, event or body accepted from a server. */
export const maxMessage = fixedLimits.messageBytes.value

/** Limits for a server's result: its content blocks, and all values in it. Millions of them would exhaust a client. */
export const maxBlocks = fixedLimits.resultBlocks.value
export const maxResultValues = fixedLimits.resultValues.value

/**
 * Limit for the values in any other message of a server: an error, a notification, a request, or questions to a client.
 * Unlike results, these are parsed, which takes up to a microsecond for each value.
 */
export const maxMessageValues = fixedLimits.messageValues.value

export const methodNotFound = -32601
const internalError = -32603

export type Id = string | number

/** One JSON-RPC message. Its buffers are complete JSON objects: valid UTF-8, on one line, ready to be spliced. */
export type Message =
  | { readonly kind: 'request'; readonly id: Id; readonly method: string; readonly params: Buffer | undefined }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Buffer | undefined }
  | ResultMessage
  | { readonly kind: 'error'; readonly id: Id | null; readonly error: Buffer }
  | MalformedMessage

export interface ResultMessage {
  readonly kind: 'response'
  readonly id: Id
  readonly result: Buffer
  readonly notes: ResultNotes
}

/** A message that could not be read. `parse` means that it is not JSON. The id is set if it could be read. */
export interface MalformedMessage {
  readonly kind: 'invalid'
  readonly reason: string
  readonly id: Id | null
  readonly parse: boolean
  readonly tooDeep?: true
}

/**
 * Reads a message's envelope; never throws. `params`, `result` and `error` are slices of the input, or of a copy if the
 * input had to be cleaned; a malformed `error` is replaced. They are well-formed JSON, but may have duplicate keys below the top level.
 */
export function readMessage(received: Buffer): Message {
  const clean = toUtf8(received)
  const broken = hasLineBreak(clean)
  const bytes = broken ? Buffer.from(clean) : clean
  const found = readEnvelope(bytes)
  if (found === undefined) return unreadable(bytes)
  // Only now, because the scan refuses line breaks inside strings.
  if (broken) replaceLineBreaks(bytes)

  const { id: idBytes, jsonrpc, method: methodBytes, params, result, error } = found
  const id = idBytes === undefined ? undefined : readId(idBytes)
  const invalid = (reason: string): MalformedMessage => ({ kind: 'invalid', reason, id: id ?? null, parse: false })

  if (found.misspelt !== undefined) {
    const { name, known } = found.misspelt
    const refused = invalid(`the member ${JSON.stringify(name.slice(0, 100))} may be read as "${known}"`)
    // If the name of the id member is misspelt, the message has no reliable id.
    return known === 'id' ? { ...refused, id: null } : refused
  }
  if (jsonrpc === undefined || readString(jsonrpc) !== '2.0') return invalid('"jsonrpc" must be "2.0"')
  if (idBytes !== undefined && id === undefined) {
    return invalid(`"id" must be a string of at most ${maxIdBytes} bytes or an exactly representable number`)
  }

  if (methodBytes !== undefined) {
    const method = readString(methodBytes)
    if (method === undefined) return invalid('"method" must be a string')
    if (result !== undefined || error !== undefined) return invalid('a message cannot be both a request and a response')
    if (params !== undefined && !startsObject(params)) return invalid('"params" must be an object')
    if (id === undefined) return { kind: 'notification', method, params }
    if (id === null) return invalid('the "id" of a request must not be null')
    return { kind: 'request', id, method, params }
  }

  if (result !== undefined) {
    if (error !== undefined) return invalid('a response cannot have both "result" and "error"')
    if (id === undefined || id === null) return invalid('a response must have the "id" of its request')
    if (!startsObject(result)) return invalid('"result" must be an object')
    return { kind: 'response', id, result, notes: found.notes }
  }
  if (error === undefined) return invalid('a message needs "method", "result" or "error"')
  if (!startsObject(error)) return invalid('"error" must be an object')
  return { kind: 'error', id: id ?? null, error: validError(error) }
}

/**
 * An error with an integer as `code` and a text as `message`; clients wait until their timeout for any other. The
 * original of a malformed one becomes its `data`.
 */
function validError(error: Buffer): Buffer {
  const found = members(error, ['code', 'message'])
  const code = found?.get('code')
  const message = found?.get('message')
  const isText = message?.[0] === QUOTE
  if (code && isText && Number.isSafeInteger(jsonValue(code.toString('utf8')))) return error
  const text = isText ? message : `"The error has no valid code and message; data holds it as it was received."`
  return Buffer.from(`{"code":${internalError},"message":${text},"data":${error}}`)
}

function unreadable(bytes: Buffer): MalformedMessage {
  const invalid = (reason: string, parse: boolean): MalformedMessage => ({ kind: 'invalid', reason, id: null, parse })
  if (depthExceeds(bytes, maxDepth))
    return { ...invalid(`the message is nested deeper than ${maxDepth} levels`, false), tooDeep: true }
  if (!isJson(bytes)) return invalid('the message is not JSON', true)
  const first = bytes.toString('latin1').trimStart()[0]
  if (first === '[') return invalid('batches are not supported: send one message at a time', false)
  if (first === '{') return invalid(`the member ${JSON.stringify(duplicateIn(bytes).member)} occurs twice`, false)
  return invalid('the message must be a JSON object', false)
}

const startsObject = (bytes: Buffer): boolean => bytes[0] === 0x7b

function readString(bytes: Buffer): string | undefined {
  if (bytes[0] !== QUOTE) return undefined
  const text = bytes.toString('utf8', 1, bytes.length - 1)
  return text.includes('\\') ? (jsonValue(`"${text}"`) as string) : text
}

/** Maximum length of an id in JSON. Ids are kept while requests wait, and repeated in each message of a stream. */
const maxIdBytes = 1_024

/** Reads an id; undefined if the bytes are not a valid id, or are a number too large to be repeated exactly. */
function readId(bytes: Buffer): Id | null | undefined {
  const number = readDigits(bytes)
  if (number >= 0) return number
  const first = bytes[0]
  if (first === 0x7b || first === 0x5b || bytes.length > maxIdBytes) return undefined
  const value: unknown = jsonValue(bytes.toString('utf8'))
  if (value === null || typeof value === 'string') return value
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value
}

/** Reads an id that is a small integer, as most are, without parsing JSON; -1 for anything else. */
function readDigits(bytes: Buffer): number {
  if (bytes.length > 9 || (bytes[0] === 0x30 && bytes.length > 1)) return -1
  let value = 0
  for (const byte of bytes) {
    if (byte < 0x30 || byte > 0x39) return -1
    value = 10 * value + byte - 0x30
  }
  return value
}

/** The members of a JSON-RPC message as slices, and notes on its result. */
interface Envelope {
  jsonrpc?: Buffer
  id?: Buffer
  method?: Buffer
  params?: Buffer
  result?: Buffer
  error?: Buffer
  /** A member that some parsers may take for a known one. */
  misspelt?: { readonly name: string; readonly known: string }
  readonly notes: ResultNotes
}

/** Details of a result, noted while the message is scanned, so that the result need not be scanned again. */
interface ResultNotes {
  /** The value of `isError`, as `JSON.parse` would give it. */
  isError: boolean
  /** Whether the result has one of the `special` members, or a member name with escapes. */
  special: boolean
  /** The number of content blocks, or of resource contents or prompt messages. */
  blocks: number
  /** A member that Toolway reads and that occurs twice. Programs differ in which of the two they take. */
  repeated?: string
}

type Name = Exclude<keyof Envelope, 'notes' | 'misspelt'>

const isName = (key: string): key is Name => (names as readonly string[]).includes(key)

const decoded = (bytes: Buffer, from: number, to: number): string =>
  jsonValue(bytes.toString('utf8', from, to)) as string

const names: readonly Name[] = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']

/** Members that differ between protocol versions, that request input, or that start a task. */
const special: readonly string[] = ['resultType', 'ttlMs', 'cacheScope', 'task', 'requestState', 'inputRequests']

const BACKSLASH = 0x5c
const QUOTE = 0x22
const TRUE = 0x74

/**
 * Finds the members of a message; undefined for anything that `members` would reject. Names are compared in place
 * without allocating, because this runs twice in every call.
 */
export function readEnvelope(bytes: Buffer): Envelope | undefined {
  const words = wordsOf(bytes)
  const found: Envelope = { notes: { isError: false, special: false, blocks: 0 } }
  let others: Set<string> | undefined
  const end = eachMember(bytes, words, skipSpace(bytes, 0), (from, to, start) => {
    const key = names[indexOfName(bytes, from, to, names)] ?? decoded(bytes, from, to)
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

/** The index of the name without escapes at this position in a list, or -1. */
function indexOfName(bytes: Buffer, from: number, to: number, list: readonly string[]): number {
  for (let index = 0; index < list.length; index++) {
    const name = list[index] as string
    if (to - from === name.length + 2 && spells(bytes, from, to, name)) return index
  }
  return -1
}

function skipResult(bytes: Buffer, words: Int32Array, from: number, notes: ResultNotes): number {
  let seen = 0
  return eachMember(bytes, words, from, (keyStart, keyEnd, start) => {
    const odd = hasEscape(bytes, keyStart, keyEnd)
    const name = odd ? decoded(bytes, keyStart, keyEnd) : undefined
    const index = name === undefined ? indexOfName(bytes, keyStart, keyEnd, resultMembers) : resultMembers.indexOf(name)
    const bit = index < 0 ? 0 : 1 << index
    if (seen & bit) notes.repeated ??= resultMembers[index] as string
    seen |= bit
    if (index === 0) notes.isError = bytes[start] === TRUE
    if (odd || index > blockLists.length) notes.special = true
    const isList = bytes[start] === OPEN_ARRAY && index > 0 && index <= blockLists.length
    return isList ? skipBlocks(bytes, words, start, notes) : skipValue(bytes, words, start, 2)
  })
}

const blockLists: readonly string[] = ['content', 'contents', 'messages']

/** The members of a result that Toolway reads. */
const resultMembers: readonly string[] = ['isError', ...blockLists, ...special]

/** Skips an array and counts its elements. */
function skipBlocks(bytes: Buffer, words: Int32Array, from: number, notes: ResultNotes): number {
  let at = skipSpace(bytes, from + 1)
  if (bytes[at] === CLOSE_ARRAY) return at + 1
  for (;;) {
    const end = skipValue(bytes, words, at, 3)
    if (end === none) return none
    notes.blocks++
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_ARRAY) return at + 1
    if (bytes[at] !== COMMA) return none
    at = skipSpace(bytes, at + 1)
  }
}

function hasEscape(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

export const requestBytes = (id: Id, method: string, params?: Json | Buffer): Buffer =>
  wrapped(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)}`, ',"params":', params)

export const notificationBytes = (method: string, params?: Json | Buffer): Buffer =>
  wrapped(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`, ',"params":', params)

export const resultBytes = (id: Id, result: Json | Buffer): Buffer =>
  wrapped(`{"jsonrpc":"2.0","id":${JSON.stringify(id)}`, ',"result":', result)

/** A response with a result in pieces, which are not copied. */
export const resultPieces = (id: Id, result: Pieces): Pieces => [
  Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`),
  ...result,
  closing,
]

const closing = Buffer.from('}')

export const errorBytes = (
  id: Id | null,
  error: Json | Buffer | { readonly code: number; readonly message: string; readonly data?: unknown },
): Buffer =>
  wrapped(
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)}`,
    ',"error":',
    Buffer.isBuffer(error) || error instanceof Json ? error : Json.of(error),
  )

/** Writes a message with one copy of its payload. */
function wrapped(head: string, key: string, body: Json | Buffer | undefined): Buffer {
  if (body === undefined) return Buffer.from(`${head}}`)
  const bytes = Buffer.isBuffer(body) ? body : body.bytes
  const start = head + key
  const at = Buffer.byteLength(start)
  const whole = Buffer.allocUnsafe(at + bytes.length + 1)
  whole.write(start, 0, 'utf8')
  whole.set(bytes, at)
  whole[at + bytes.length] = 0x7d
  return whole
}
