import type { ServerResponse } from 'node:http'
import type { Log } from '../../core/log.ts'
import { asRecord } from '../../lib/is-record.ts'
import { type HttpError, toHttpError } from '../errors.ts'
import { sendJson } from '../http/response.ts'
import type { AdminError } from './contract.ts'

/** Headers for all responses except pages. They prevent caching, framing and type sniffing. */
export const apiHeaders = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const

export function answerJson(response: ServerResponse, value: unknown): void {
  if (response.destroyed) return
  if (value === undefined) response.writeHead(204).end()
  else sendJson(response, value)
}

export function errorBody(refusal: HttpError): Buffer {
  const error: AdminError = {
    error: { code: codeOf(refusal), message: refusal.message, ...asRecord(refusal.details.data) },
  }
  return Buffer.from(JSON.stringify(error))
}

/** Error codes by HTTP status, for errors that have no Toolway code. */
const codes: Readonly<Record<number, string>> = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  409: 'CONFLICT',
  413: 'TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
}

/** The last event of a stream that failed. */
export function failureEvent(thrown: unknown, log: Log) {
  const refusal = toHttpError(thrown, log)
  return { kind: 'error', code: codeOf(refusal), message: refusal.message } as const
}

export const codeOf = ({ status, details: { data } }: HttpError): string =>
  (data as { code?: string } | undefined)?.code ?? codes[status] ?? `HTTP_${status}`
