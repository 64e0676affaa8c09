import type { ServerResponse } from 'node:http'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { errorBytes } from '../wire/encode.ts'
import type { Id } from '../wire/message.ts'

/** JSON-RPC's own numbers, for requests that break the protocol itself. */
export const rpc = { parse: -32700, request: -32600, method: -32601, params: -32602, session: -32001 } as const

interface RefusalDetails {
  readonly id?: Id | null
  readonly data?: unknown
  readonly headers?: Readonly<Record<string, string>>
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

  /** A refusal that has one of our codes: status, number and data come from the table. */
  static of(code: ErrorCode, message: string, details: { rule?: string; headers?: Record<string, string> } = {}): Refusal {
    const { rule, headers } = details
    const error = new ToolwayError(code, message, rule === undefined ? {} : { rule })
    return new Refusal(error.kind.http, error.kind.rpc, message, { data: error.data, ...(headers && { headers }) })
  }
}

/** Answers with the refusal as a JSON-RPC error, whatever the path: every client that can read one answer can read it. */
export function refuse(response: ServerResponse, refusal: Refusal): void {
  const { id = null, data, headers } = refusal.details
  const { code, message } = refusal
  const body = errorBytes(id, data === undefined ? { code, message } : { code, message, data })
  response.writeHead(refusal.status, { ...headers, 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(body)
}
