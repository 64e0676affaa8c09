import type { IncomingHttpHeaders } from 'node:http'
import type { RpcErrorObject } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { readBaggage, readTraceContext } from '../core/trace-context.ts'
import { Json } from '../json/json.ts'
import { countMembers, extentOf, type JsonSpan, maxDepth, members, repeatsKey } from '../json/json-text.ts'
import { jsonValue } from '../json/parse-json.ts'
import { isRecord } from '../lib/is-record.ts'
import { toCleanLine } from '../wire/bytes.ts'
import { AmbiguousMember, definedMembers, duplicateIn, type Scope } from '../wire/check-members.ts'
import { clientMessages } from '../wire/defined-members.ts'
import { type Id, readMessage } from '../wire/message.ts'
import { ProtocolError, rpcCodes } from './errors.ts'

export type Params = Readonly<Record<string, unknown>>

export interface InboundRequest {
  readonly kind: 'request'
  readonly id: Id
  readonly method: string
  readonly params: Params
  readonly text?: ParamsText
}

/** The original bytes of params. Servers receive these bytes, except for members that had to be changed (V5). */
export interface ParamsText {
  /** One JSON object without duplicate members; `value` is its parsed value. */
  readonly bytes: Buffer
  readonly value: Params
  /** The bytes of `arguments`; set only if the parser located them. */
  readonly arguments: Buffer | undefined
  /** Whether every number can be represented exactly as a double. */
  readonly exact: boolean
}

export interface InboundNotification {
  readonly kind: 'notification'
  readonly method: string
  readonly params: Params
}

export interface InboundResponse {
  readonly kind: 'response'
  readonly id: Id | null
  readonly result?: Json
  readonly error?: Json<RpcErrorObject>
}

export interface UnreadableMessage {
  readonly kind: 'invalid'
  readonly id: Id | null
  readonly code: number
  readonly message: string
}

export type InboundMessage = InboundRequest | InboundNotification | InboundResponse

const noParams: Params = Object.freeze({})

/** Parses a message. Requests are parsed only once, and all later code uses the parsed value. */
export const readInbound = (bytes: Buffer): InboundMessage | UnreadableMessage =>
  (bytes.length <= maxWholeParse || seemsRequest(bytes) ? readPlain(bytes) : undefined) ?? readCarefully(bytes)

/** Maximum size of messages that are parsed whole, whatever they are. Larger client responses are passed on unparsed. */
const maxWholeParse = 64 * 1024

/** Whether a large message is probably a request. Only the time that reading it takes depends on this. */
const seemsRequest = (bytes: Buffer): boolean => bytes.subarray(0, 512).includes('"method"')

/** A fast path for ordinary requests. Returns undefined for everything else, which `readCarefully` then reads. */
function readPlain(bytes: Buffer): InboundRequest | undefined {
  const message = parseOrUndefined(bytes)
  if (!isRecord(message)) return undefined
  const { jsonrpc, id, method, params = noParams } = message
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isRecord(params) || !isPlainId(id)) return undefined
  for (const name in message) if (!plainMembers.has(name)) return undefined
  const extent = extentOf(bytes)
  if (extent.depth > maxDepth || extent.members !== countMembers(message)) return undefined
  if (extent.params === undefined) return { kind: 'request', id, method, params }
  const [start, end] = extent.params
  const text = {
    bytes: bytes.subarray(start, end),
    value: params,
    arguments: argumentBytes(bytes, extent.arguments),
    exact: extent.exact,
  }
  return { kind: 'request', id, method, params, text }
}

/** The bytes in a span. They are copied if the slice would keep a much larger buffer in memory. */
function argumentBytes(bytes: Buffer, span: JsonSpan | undefined): Buffer | undefined {
  if (span === undefined) return undefined
  const part = toCleanLine(bytes.subarray(span[0], span[1]))
  return part.buffer.byteLength > 4 * part.length + 16_384 ? Buffer.from(part) : part
}

const plainMembers: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])

function parseOrUndefined(bytes: Buffer): unknown {
  try {
    return jsonValue(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

const isPlainId = (id: unknown): id is Id => (typeof id === 'string' ? id.length <= 128 : Number.isSafeInteger(id))

function readCarefully(bytes: Buffer): InboundMessage | UnreadableMessage {
  const message = readMessage(bytes)
  switch (message.kind) {
    case 'request':
    case 'notification': {
      const { kind, method } = message
      const params = message.params === undefined ? noParams : (jsonValue(message.params.toString('utf8')) as Params)
      if (message.params !== undefined && repeatsKey(message.params, params)) {
        const id = kind === 'request' ? message.id : null
        return { kind: 'invalid', id, code: rpcCodes.params, message: duplicateIn(message.params).message }
      }
      if (kind === 'notification') return { kind, method, params }
      const text = message.params && { bytes: message.params, value: params, arguments: undefined, exact: false }
      return { kind, id: message.id, method, params, text }
    }
    case 'response':
      return { kind: 'response', id: message.id, result: Json.raw(message.result) }
    case 'error':
      return { kind: 'response', id: message.id, error: Json.raw(message.error) }
    case 'invalid': {
      const { id, parse: notJson, reason } = message
      const sentence = notJson ? 'The message is not valid JSON.' : `This is not a JSON-RPC message: ${reason}.`
      return { kind: 'invalid', id, code: notJson ? rpcCodes.parse : rpcCodes.request, message: sentence }
    }
  }
}

/** Returns a member of params with its original bytes. A member that has since been changed is serialized again. */
export function memberOf({ params, text }: ReceivedParams, name: string): Json {
  const value = params[name]
  if (text === undefined || value === undefined || text.value[name] !== value) return Json.of(value)
  if (name === 'arguments' && text.arguments !== undefined) return Json.read(value, text.arguments, text.exact)
  const part = members(toCleanLine(text.bytes))?.get(name)
  return part === undefined ? Json.of(value) : Json.read(value, part, text.exact)
}

export type ReceivedParams = Pick<InboundRequest, 'params' | 'text'>

type Received = Pick<InboundRequest, 'method' | 'params'>

/**
 * Returns only the members of params that the client's revision defines (V1). Throws if a server might confuse another
 * member with one of them. Params of unknown methods are returned unchanged, because nothing reads them.
 */
export function definedParams({ method, params }: Received, scope: Scope, log: Log): Params {
  const level = Object.hasOwn(clientMessages, method) ? clientMessages[method] : undefined
  if (level === undefined) return params
  const leftOut: string[] = []
  try {
    const defined = definedMembers(params, level, scope, leftOut)
    if (leftOut.length > 0) {
      const dropped = leftOut.slice(0, 10)
      log.debug({ method, revision: scope.revision, members: dropped }, 'dropped unknown members of params')
    }
    return defined
  } catch (thrown) {
    if (thrown instanceof AmbiguousMember) throw new ProtocolError(rpcCodes.params, thrown.message)
    throw thrown
  }
}

/** Like `definedParams`, but reports invalid params to `malformed` and returns undefined instead of throwing. */
export function definedNotificationParams(
  received: Received,
  scope: Scope,
  log: Log,
  malformed: (fault: string) => void,
): Params | undefined {
  try {
    return definedParams(received, scope, log)
  } catch (thrown) {
    if (!(thrown instanceof ProtocolError)) throw thrown
    log.debug({ method: received.method, reason: thrown.message }, 'ignored a notification from a client')
    malformed(thrown.message)
    return undefined
  }
}

/**
 * Copies the trace context from the HTTP headers into `_meta`. A context that is already in `_meta` takes precedence,
 * because it belongs to this message and not only to its transport (F16).
 */
export function withTraceContext(
  inbound: InboundMessage | UnreadableMessage,
  headers: IncomingHttpHeaders,
): InboundMessage | UnreadableMessage {
  const { traceparent, baggage } = headers
  if (inbound.kind !== 'request' || (traceparent === undefined && baggage === undefined)) return inbound
  const { params } = inbound
  const { _meta = {} } = params
  if (!isRecord(_meta) || readTraceContext(_meta) !== undefined) return inbound
  const context = readTraceContext(headers)
  const added = context
    ? { tracestate: undefined, ...context }
    : readBaggage(_meta) === undefined && readBaggage(headers)
  return added ? { ...inbound, params: { ...params, _meta: { ..._meta, ...added } } } : inbound
}
