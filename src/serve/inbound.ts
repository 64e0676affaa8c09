import type { RpcErrorObject } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { type Id, readMessage } from '../wire/message.ts'
import { depthExceeds } from '../wire/scan.ts'
import { rpc } from './refusal.ts'

export type Params = Readonly<Record<string, unknown>>

export interface InboundRequest {
  readonly kind: 'request'
  readonly id: Id
  readonly method: string
  readonly params: Params
}

export interface InboundNotification {
  readonly kind: 'notification'
  readonly method: string
  readonly params: Params
}

/** A client's answer to something it was asked. */
export interface InboundAnswer {
  readonly kind: 'answer'
  readonly id: Id | null
  readonly result?: Json
  readonly error?: Json<RpcErrorObject>
}

/** What a client sent was not a message; the sentence says what was wrong with it. */
export interface Unreadable {
  readonly kind: 'unreadable'
  readonly id: Id | null
  readonly code: number
  readonly message: string
}

export type Inbound = InboundRequest | InboundNotification | InboundAnswer

const none: Params = Object.freeze({})

/** Reads one message from a client. Unlike a server's results, what a client says is parsed whole, and only once. */
export function readInbound(bytes: Buffer): Inbound | Unreadable {
  // A deep value parses and then cannot be written again, so it is stopped before it is parsed.
  if (depthExceeds(bytes, maxDepth)) {
    return unreadable(null, rpc.request, `The message is nested more than ${maxDepth} levels deep.`)
  }
  if (isArray(bytes)) return unreadable(null, rpc.request, 'Batches are not accepted: send one message at a time.')
  const message = readMessage(bytes)
  if (message.kind === 'invalid') {
    return unreadable(message.id, message.parse ? rpc.parse : rpc.request, message.reason)
  }
  try {
    switch (message.kind) {
      case 'response':
        return { kind: 'answer', id: message.id, result: Json.of(parse(message.result)) }
      case 'error':
        return { kind: 'answer', id: message.id, error: Json.of(parse(message.error) as RpcErrorObject) }
      default: {
        const params = message.params === undefined ? none : parse(message.params)
        if (isObject(params)) return { ...message, params }
        return unreadable(message.kind === 'request' ? message.id : null, rpc.params, 'The params are not an object.')
      }
    }
  } catch (error) {
    return unreadable(null, rpc.parse, `The message is not valid JSON: ${(error as SyntaxError).message}`)
  }
}

/** Some two hundred levels are more than any schema or document needs. */
const maxDepth = 256

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parse = (bytes: Buffer): unknown => JSON.parse(bytes.toString('utf8'))

const unreadable = (id: Id | null, code: number, message: string): Unreadable => ({
  kind: 'unreadable',
  id,
  code,
  message,
})

function isArray(bytes: Buffer): boolean {
  for (const byte of bytes) {
    if (byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)) continue
    return byte === 0x5b
  }
  return false
}
