import { type RpcErrorObject, ServerError, ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { refusedResult } from '../core/result.ts'
import { errorBytes, type Id, resultBytes } from '../wire/message.ts'
import { type Answer, type HttpHeaders, retryAfter } from './answer.ts'
import { Refusal } from './refusal.ts'

/** A message that is JSON-RPC but asks for something the protocol does not know, or in a way it does not allow. */
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

/** What a request that failed is answered with: a result that a model can read, or a JSON-RPC error. */
export type Failure = ({ readonly result: Buffer } | { readonly error: Buffer | RpcErrorObject }) & {
  readonly headers?: HttpHeaders | undefined
}

/**
 * The one translation of anything thrown into an answer (E1). A tool call that was refused or failed is a result
 * that a model can read; everything else, and what was wrong with the request itself, is a JSON-RPC error.
 */
export function failureOf(method: string, thrown: unknown, log: Log): Failure {
  if (thrown instanceof ServerError) return { error: thrown.error.bytes }
  if (thrown instanceof ProtocolError) {
    const { code, message, data } = thrown
    return { error: data === undefined ? { code, message } : { code, message, data } }
  }
  const error = ours(thrown, method, log)
  const { kind, message, data } = error
  const headers = retryAfter(data.retryAfterMs)
  if (method !== 'tools/call' || kind.malformed) return { error: { code: kind.rpc, message, data }, headers }
  return { result: refusedResult(error).body.bytes, headers }
}

/** The same as a whole message. */
export function errorAnswer(id: Id, method: string, thrown: unknown, log: Log): Answer {
  const failure = failureOf(method, thrown, log)
  const message = 'result' in failure ? resultBytes(id, failure.result) : errorBytes(id, failure.error)
  return { message: [message], headers: failure.headers }
}

/** The same for what is thrown before a request has become a call: the HTTP status tells it too. */
export function asRefusal(thrown: unknown, log: Log, id?: Id): Refusal {
  if (thrown instanceof Refusal) return thrown
  const asked = id === undefined ? {} : { id }
  if (thrown instanceof ProtocolError) return new Refusal(400, thrown.code, thrown.message, asked)
  const { code, message, details } = ours(thrown, 'HTTP request', log)
  const { rule, server, retryAfterMs, challenge } = details
  const headers = challenge === undefined ? {} : { headers: { 'WWW-Authenticate': challenge } }
  return Refusal.of(code, message, { ...asked, ...headers, rule, server, retryAfterMs })
}

/** What nobody expected is told to the log with its cause, and to the caller without it. */
function ours(thrown: unknown, what: string, log: Log): ToolwayError {
  const error = ToolwayError.from(thrown)
  if (error.code === 'INTERNAL') log.error({ what, cause: error.cause ?? error }, 'A request failed unexpectedly')
  return error
}
