import type { Caller } from './call.ts'
import type { Entry } from './entry.ts'
import { type ErrorCode, ToolwayError } from './errors.ts'

export type Decision = Permission | Denial

export interface Permission {
  readonly allowed: true
  readonly rule: string
}

export interface Denial {
  readonly allowed: false
  readonly code: ErrorCode
  readonly rule: string
  readonly reason: string
  /** The cause of the denial in one word, for audit (F11); defaults to the code in lower case. */
  readonly auditReason?: string
}

/** Decides whether a caller may use an entry. Lists and calls both use this function, so they cannot disagree. */
export type Decide = (caller: Caller, entry: Entry) => Decision

export const refusalOf = ({ code, reason, rule, auditReason }: Denial, server: string): ToolwayError =>
  new ToolwayError(code, reason, { rule, server, auditReason })
