import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { type ErrorCode, type ErrorDetails, ToolwayError } from '../core/errors.ts'
import { errorBytes, type Id } from '../wire/message.ts'
import { type HttpHeaders, retryAfter } from './answer.ts'

/** JSON-RPC's own numbers, for requests that break the protocol itself. */
export const rpc = { parse: -32700, request: -32600, method: -32601, params: -32602, session: -32001 } as const

interface RefusalDetails {
  readonly id?: Id | null
  readonly data?: unknown
  readonly headers?: HttpHeaders
  /** Whether the credential that was refused is real, but expired or for somebody else. */
  readonly genuine?: true | undefined
}

/** What callers are told beside the sentence, where the refusal has one of our codes. */
interface CodedDetails extends Pick<ErrorDetails, 'rule' | 'server' | 'retryAfterMs'> {
  readonly id?: Id
  readonly headers?: HttpHeaders
  readonly genuine?: true | undefined
}

/** An HTTP request that is turned away at the door, before it has become a call. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly code: number
  readonly details: RefusalDetails

  constructor(status: number, code: number, message: string, details: RefusalDetails = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }

  /** A refusal that has one of our codes: status, number, data and when to come back follow from it. */
  static of(code: ErrorCode, message: string, details: CodedDetails = {}): Refusal {
    const { id, headers, genuine, ...told } = details
    const { kind, data } = new ToolwayError(code, message, told)
    return new Refusal(kind.http, kind.rpc, message, {
      data,
      headers: { ...retryAfter(data.retryAfterMs), ...headers },
      genuine,
      ...(id !== undefined && { id }),
    })
  }
}

export const wrongMethod = (method: string | undefined, allowed: string): Refusal =>
  new Refusal(405, rpc.request, `${method} is not allowed here: use ${allowed}.`, { headers: { Allow: allowed } })

/** Answers with the refusal; as a JSON-RPC error, unless those who ask there read something else. */
export function refuse(response: ServerResponse, refusal: Refusal, clock: Clock, bodyOf = rpcError): void {
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

function rpcError({ code, message, details: { id = null, data } }: Refusal): Buffer {
  return errorBytes(id, data === undefined ? { code, message } : { code, message, data })
}

/** Smaller bodies are read to their end, so that the connection can be used again. */
const spared = 64 * 1024

function hasMoreToSend(request: IncomingMessage): boolean {
  if (request.complete) return false
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > spared
}

/** How long, and how much, a refused client may go on sending before it is cut off. */
const lingerMs = 1_000
const lingerBytes = 8 * 1024 * 1024

/**
 * Closing a connection while the other side still sends destroys the answer on its way,
 * so what comes is thrown away for a moment before the connection is closed.
 */
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
  const timer = clock.after(lingerMs, finish)
  request.on('data', onData).once('close', finish).resume()
}
