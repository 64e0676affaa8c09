import type { ServerResponse } from 'node:http'
import type { Log } from '../core/log.ts'
import { apiCodeOf, toHttpError } from '../serve/errors.ts'
import { sendJson } from '../serve/http/response.ts'

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

/** The last event of a stream that failed. */
export function failureEvent(thrown: unknown, log: Log) {
  const refusal = toHttpError(thrown, log)
  return { kind: 'error', code: apiCodeOf(refusal), message: refusal.message } as const
}
