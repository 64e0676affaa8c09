import type { Caller } from './call.ts'
import type { Entry } from './entry.ts'
import type { ErrorCode } from './errors.ts'

/** What policy says about one caller and one entry, and which rule said it. */
export type Decision = { readonly allowed: true } | Denial

export interface Denial {
  readonly allowed: false
  readonly code: ErrorCode
  readonly rule: string
  /** A sentence for whoever was refused. */
  readonly reason: string
}

/** The one decision function: what is listed and what may be called both come from it, so they cannot disagree. */
export type Decide = (caller: Caller, entry: Entry) => Decision
