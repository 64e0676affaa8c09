import { depthExceeds, isJson } from '../core/json-text/scan.ts'
import { maxDepth } from '../core/json-text/skip.ts'
import { duplicateIn } from './check-members.ts'
import { type Notes, readEnvelope } from './envelope.ts'
import { carriable } from './one-line.ts'

export type Id = string | number

/** One JSON-RPC message. Its buffers are complete JSON objects: valid UTF-8, on one line, ready to be spliced. */
export type Message =
  | { readonly kind: 'request'; readonly id: Id; readonly method: string; readonly params: Buffer | undefined }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Buffer | undefined }
  | Response
  | { readonly kind: 'error'; readonly id: Id | null; readonly error: Buffer }
  | Invalid

/** An answer with the result of a request. */
export interface Response {
  readonly kind: 'response'
  readonly id: Id
  readonly result: Buffer
  readonly notes: Notes
}

/** `parse` says that it is not JSON at all; the id is given where it could still be read. */
export interface Invalid {
  readonly kind: 'invalid'
  readonly reason: string
  readonly id: Id | null
  readonly parse: boolean
}

/**
 * Reads the envelope of a message and leaves the rest as the bytes it came in: slices of the input, unless that had
 * line breaks in it or was not UTF-8 and had to be mended in a copy. Never throws. What is inside `params`, `result`
 * and `error` is well-formed JSON, but keys below the top level may occur twice.
 */
export function readMessage(received: Buffer): Message {
  const bytes = carriable(received)
  const found = readEnvelope(bytes)
  if (found === undefined) return unreadable(bytes)

  const { id: idBytes, jsonrpc, method: methodBytes, params, result, error } = found
  const id = idBytes === undefined ? undefined : readId(idBytes)
  const invalid = (reason: string): Invalid => ({ kind: 'invalid', reason, id: id ?? null, parse: false })

  if (found.misspelt !== undefined) {
    const { name, known } = found.misspelt
    const refused = invalid(`the member ${JSON.stringify(name.slice(0, 100))} may be read as "${known}"`)
    // With two spellings of the id, nobody knows whose message this is.
    return known === 'id' ? { ...refused, id: null } : refused
  }
  if (jsonrpc === undefined || readString(jsonrpc) !== '2.0') return invalid('"jsonrpc" must be "2.0"')
  if (idBytes !== undefined && id === undefined) {
    return invalid('"id" must be a string or a number that can be repeated exactly')
  }

  if (methodBytes !== undefined) {
    const method = readString(methodBytes)
    if (method === undefined) return invalid('"method" must be a string')
    if (result !== undefined || error !== undefined) return invalid('a message cannot both ask and answer')
    if (params !== undefined && !isObject(params)) return invalid('"params" must be an object')
    if (id === undefined) return { kind: 'notification', method, params }
    if (id === null) return invalid('the "id" of a request must not be null')
    return { kind: 'request', id, method, params }
  }

  if (result !== undefined) {
    if (error !== undefined) return invalid('an answer cannot have both "result" and "error"')
    if (id === undefined || id === null) return invalid('an answer must have the "id" of its request')
    if (!isObject(result)) return invalid('"result" must be an object')
    return { kind: 'response', id, result, notes: found.notes }
  }
  if (error === undefined) return invalid('a message needs "method", "result" or "error"')
  if (!isObject(error)) return invalid('"error" must be an object')
  return { kind: 'error', id: id ?? null, error }
}

function unreadable(bytes: Buffer): Invalid {
  const invalid = (reason: string, parse: boolean): Invalid => ({ kind: 'invalid', reason, id: null, parse })
  if (depthExceeds(bytes, maxDepth)) return invalid(`the message nests deeper than ${maxDepth} levels`, false)
  if (!isJson(bytes)) return invalid('the message is not JSON', true)
  const first = bytes.toString('latin1').trimStart()[0]
  if (first === '[') return invalid('batches are not supported: send one message at a time', false)
  if (first === '{') return invalid(`the member ${JSON.stringify(duplicateIn(bytes).member)} occurs twice`, false)
  return invalid('the message must be a JSON object', false)
}

const isObject = (bytes: Buffer): boolean => bytes[0] === 0x7b

function readString(bytes: Buffer): string | undefined {
  if (bytes[0] !== 0x22) return undefined
  const text = bytes.toString('utf8', 1, bytes.length - 1)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/** `undefined` where it is no id: also for numbers so large that they would come back as another one. */
function readId(bytes: Buffer): Id | null | undefined {
  const number = readDigits(bytes)
  if (number >= 0) return number
  const first = bytes[0]
  if (first === 0x7b || first === 0x5b) return undefined
  const value: unknown = JSON.parse(bytes.toString('utf8'))
  if (value === null || typeof value === 'string') return value
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value
}

/** Most ids are small whole numbers, which need not be parsed; -1 for all else. */
function readDigits(bytes: Buffer): number {
  if (bytes.length > 9 || (bytes[0] === 0x30 && bytes.length > 1)) return -1
  let value = 0
  for (const byte of bytes) {
    if (byte < 0x30 || byte > 0x39) return -1
    value = 10 * value + byte - 0x30
  }
  return value
}
