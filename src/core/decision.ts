import type { Caller } from './call.ts'
import type { Entry } from './entry.ts'
import { type ErrorCode, ToolwayError } from './errors.ts'

/** What policy says about one caller and one entry, and which rule said it. */
export type Decision = Permission | Denial

export interface Permission {
  readonly allowed: true
  readonly rule: string
}

export interface Denial {
  readonly allowed: false
  readonly code: ErrorCode
  readonly rule: string
  /** A sentence for whoever was refused. */
  readonly reason: string
  /** What audit calls the reason (F11): one word per cause. The code's own word where it is left out. */
  readonly auditReason?: string
}

/** The one decision function: what is listed and what may be called both come from it, so they cannot disagree. */
export type Decide = (caller: Caller, entry: Entry) => Decision

/** What a denial means to whoever is refused. */
export const refusalOf = ({ code, reason, rule, auditReason }: Denial, server: string): ToolwayError =>
  new ToolwayError(code, reason, { rule, server, ...(auditReason !== undefined && { auditReason }) })
