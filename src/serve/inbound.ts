import type { RpcErrorObject } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { hasDuplicateKeys } from '../wire/duplicates.ts'
import { type Id, readMessage } from '../wire/message.ts'
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

/** Reads one message from a client. What a client asks for is parsed, once: everything behind the door sees only that. */
export function readInbound(bytes: Buffer): Inbound | Unreadable {
  const message = readMessage(bytes)
  if ('params' in message && message.params !== undefined && hasDuplicateKeys(message.params)) {
    const id = message.kind === 'request' ? message.id : null
    return { kind: 'unreadable', id, code: rpc.request, message: 'A key occurs twice in "params": send each once.' }
  }
  switch (message.kind) {
    case 'request':
      return { kind: 'request', id: message.id, method: message.method, params: parse(message.params) }
    case 'notification':
      return { kind: 'notification', method: message.method, params: parse(message.params) }
    case 'response':
      return { kind: 'answer', id: message.id, result: Json.raw(message.result) }
    case 'error':
      return { kind: 'answer', id: message.id, error: Json.raw(message.error) }
    case 'invalid': {
      const { id, parse: notJson, reason } = message
      const sentence = notJson ? 'The message is not valid JSON.' : `This is not a JSON-RPC message: ${reason}.`
      return { kind: 'unreadable', id, code: notJson ? rpc.parse : rpc.request, message: sentence }
    }
  }
}

/** The bytes are known to be one well-formed object of bounded depth. */
const parse = (params: Buffer | undefined): Params =>
  params === undefined ? none : (JSON.parse(params.toString('utf8')) as Params)

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
