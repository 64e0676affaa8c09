import type { Pieces } from '../wire/bytes.ts'

/** A message, and what HTTP adds to it where there is HTTP. */
export interface Answer {
  readonly message: Pieces
  readonly status?: number
  readonly headers?: HttpHeaders | undefined
}

export type HttpHeaders = Readonly<Record<string, string>>

/** Tells HTTP, too, when to come back: in whole seconds, and never too early. */
export const retryAfter = (retryAfterMs: number | undefined): HttpHeaders | undefined =>
  retryAfterMs === undefined ? undefined : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }
