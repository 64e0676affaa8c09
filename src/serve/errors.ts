import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../core/access.ts'
import type { Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, type ErrorDetails, type RpcErrorObject, ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { refusedResult } from '../core/result.ts'
import { asRecord } from '../lib/is-record.ts'
import type { Pieces } from '../wire/bytes.ts'
import { errorBytes, type Id, resultBytes } from '../wire/message.ts'

/** The error for a JSON-RPC message that violates MCP: an unknown method or invalid params. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export type FailedRequest = ({ readonly result: Buffer } | { readonly error: Buffer | RpcErrorObject }) & {
  readonly headers?: HttpHeaders | undefined
}

/**
 * Converts anything thrown into a response (E1). A denied or failed tool call becomes a result that a model can read;
 * malformed requests and all other failures become JSON-RPC errors.
 */
export function failureOf(method: string, thrown: unknown, log: Log): FailedRequest {
  if (thrown instanceof ServerError) return { error: thrown.error.bytes }
  if (thrown instanceof ProtocolError) {
    const { code, message, data } = thrown
    return { error: { code, message, data } }
  }
  const error = toolwayError(thrown, method, log)
  const { kind, message, data } = error
  const headers = retryAfter(data.retryAfterMs)
  if (method !== 'tools/call' || kind.malformed) return { error: { code: kind.rpc, message, data }, headers }
  return { result: refusedResult(error).body.bytes, headers }
}

export function errorResponse(id: Id, method: string, thrown: unknown, log: Log): EncodedResponse {
  const failure = failureOf(method, thrown, log)
  if ('result' in failure) return { message: [resultBytes(id, failure.result)], headers: failure.headers }
  const isNotFound = thrown instanceof ToolwayError && thrown.code === 'TOOL_NOT_FOUND'
  const isUnknownResource = isNotFound && method.startsWith('resources/')
  const error = isUnknownResource ? { ...failure.error, code: legacyResourceNotFound } : failure.error
  return { message: [errorBytes(id, error)], headers: failure.headers }
}

/** The code for an unknown resource in revisions up to 2025-11-25; since then it is that for invalid params. */
export const legacyResourceNotFound = -32002

/** Converts an error that was thrown before a request became a call. */
export function toHttpError(thrown: unknown, log: Log, id?: Id): HttpError {
  if (thrown instanceof HttpError) return thrown
  if (thrown instanceof ProtocolError) return new HttpError(400, thrown.code, thrown.message, { id })
  const { code, message, details } = toolwayError(thrown, 'HTTP request', log)
  const { rule, server, retryAfterMs, challenge } = details
  const headers = challenge === undefined ? undefined : { 'WWW-Authenticate': challenge }
  return HttpError.of(code, message, { id, headers, rule, server, retryAfterMs })
}

/** Converts an error to a ToolwayError. Unexpected errors are logged with their cause, which callers do not see. */
export function toolwayError(thrown: unknown, what: string, log: Log): ToolwayError {
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') log.error({ what, err: error.cause ?? error }, 'request failed unexpectedly')
  return error
}

type Sender = Partial<Pick<Caller, 'principal' | 'address'>>

/** Audits a message that violates the protocol (F11). Such a message never becomes a call. */
export function recordMalformed(access: Pick<Access, 'rejected'>, sender: Sender, detail: string): void {
  const { principal, address } = sender
  access.rejected({ code: 'INVALID_ARGUMENTS', malformed: true, detail, principal, address })
}

/** Whether an error means that the request is malformed. Used by endpoints other than the MCP endpoint. */
export const isUnreadableRequest = ({ status }: HttpError): boolean =>
  status === 400 || status === 413 || status === 415

export function recordIfMalformed(access: Pick<Access, 'rejected'>, sender: Sender, thrown: unknown): void {
  const cause = thrown instanceof ToolwayError ? thrown.cause : thrown
  if (cause instanceof ProtocolError || (cause instanceof HttpError && isMalformed(cause))) {
    recordMalformed(access, sender, cause.message)
  }
}

/** Whether the request violates the protocol. Errors with a Toolway code are recorded where they are thrown. */
const isMalformed = ({ status, code, details: { data } }: HttpError): boolean =>
  [400, 404, 406, 413, 415].includes(status) &&
  code !== rpcCodes.session &&
  (data as { code?: unknown } | undefined)?.code === undefined

export const rpcCodes = { parse: -32700, request: -32600, method: -32601, params: -32602, session: -32001 } as const

interface HttpErrorDetails {
  readonly id?: Id | null
  readonly data?: unknown
  readonly headers?: HttpHeaders
  /** Set if the rejected credential is genuine, but expired or issued for another audience. */
  readonly genuine?: true | undefined
}

type CodedDetails = Omit<HttpErrorDetails, 'data'> & Pick<ErrorDetails, 'rule' | 'server' | 'retryAfterMs'>

/** The error for an HTTP request that is rejected before it becomes a call. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly code: number
  readonly details: HttpErrorDetails

  constructor(status: number, code: number, message: string, details: HttpErrorDetails = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }

  /** Creates an error whose code determines the status, JSON-RPC code, data and Retry-After header. */
  static of(code: ErrorCode, message: string, details: CodedDetails = {}): HttpError {
    const { id, headers, genuine, ...rest } = details
    const { kind, data } = new ToolwayError(code, message, rest)
    const all = { ...retryAfter(data.retryAfterMs), ...headers }
    return new HttpError(kind.http, kind.rpc, message, { id, data, headers: all, genuine })
  }
}

export const methodNotAllowed = (method: string | undefined, allowed: string): HttpError =>
  new HttpError(405, rpcCodes.request, `${method} is not allowed here: use ${allowed}.`, {
    headers: { Allow: allowed },
  })

/** Marks the refusal of a request that was not started because the gateway is shutting down. */
export const stoppingHeader = 'toolway-stopping'

export const shuttingDown = (id?: Id): HttpError =>
  HttpError.of('OVERLOADED', 'This gateway is shutting down: try again in a moment.', {
    id,
    retryAfterMs: 1_000,
    headers: { Connection: 'close', [stoppingHeader]: '1' },
  })

/** Sends an error response. The body is a JSON-RPC error, unless `bodyOf` encodes it differently. */
export function sendHttpError(response: ServerResponse, refusal: HttpError, clock: Clock, bodyOf = rpcError): void {
  if (response.destroyed) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const body = bodyOf(refusal)
  const { headers } = refusal.details
  const shared = { ...headers, 'Content-Type': 'application/json', 'Content-Length': body.length }
  if (!hasMoreToSend(response.req)) {
    response.writeHead(refusal.status, shared).end(body)
    return
  }
  response.writeHead(refusal.status, { ...shared, Connection: 'close' }).write(body)
  linger(response, clock)
}

const rpcError = ({ code, message, details: { id = null, data } }: HttpError): Buffer =>
  errorBytes(id, { code, message, data })

/** Maximum size of a rejected body that is still read to the end, so that the connection can be reused. */
const maxDrainedBody = 64 * 1024

function hasMoreToSend(request: IncomingMessage): boolean {
  if (request.complete) return false
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > maxDrainedBody
  )
}

/** How long, and how many bytes, a rejected client may still send before the connection is closed. */
const refusalLingerMs = 1_000
const lingerBytes = 8 * 1024 * 1024

/** Discards more of the body before closing: a client that is still sending might otherwise lose the response. */
function linger(response: ServerResponse, clock: Clock): void {
  const request = response.req
  let left = lingerBytes
  const finish = () => {
    timer[Symbol.dispose]()
    request.off('data', onData).pause()
    response.end()
  }
  const onData = (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) finish()
  }
  const timer = clock.after(refusalLingerMs, finish)
  request.on('data', onData).once('close', finish).resume()
}

/** A response that is ready to be sent. stdio ignores status and headers. */
export interface EncodedResponse {
  readonly message: Pieces
  readonly status?: number
  readonly headers?: HttpHeaders | undefined
}

export type HttpHeaders = Readonly<Record<string, string>>

export const retryAfter = (retryAfterMs: number | undefined): HttpHeaders | undefined =>
  retryAfterMs === undefined ? undefined : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }

export function apiErrorBody(refusal: HttpError): Buffer {
  const { message, details } = refusal
  return Buffer.from(JSON.stringify({ error: { code: apiCodeOf(refusal), message, ...asRecord(details.data) } }))
}

/** Error codes by HTTP status, for errors that have no Toolway code. */
const apiCodes: Readonly<Record<number, string>> = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  409: 'CONFLICT',
  413: 'TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
}

export const apiCodeOf = ({ status, details: { data } }: HttpError): string =>
  (data as { code?: string } | undefined)?.code ?? apiCodes[status] ?? `HTTP_${status}`
