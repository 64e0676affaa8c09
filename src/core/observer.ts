import type { Operation } from './audit.ts'
import type { Call } from './call.ts'
import type { Trail } from './trail.ts'

/** `tool_error`: the tool reported a failure (`isError`). `failed`: an error of ours or of the server. */
export interface CallOutcome {
  readonly kind: 'answered' | 'tool_error' | 'denied' | 'failed'
  /** One of our codes, or `rpc -32602` for a server's own error. */
  readonly code?: string
}

export interface Observed {
  readonly call: Call
  readonly operation: Operation
  /** Milliseconds since the epoch. */
  readonly at: number
  /** On the monotonic clock of the trail's steps. */
  readonly start: number
  readonly ms: number
  readonly outcome: CallOutcome
  readonly trail: Trail
}

/** Must not throw, and must not keep the call's arguments or result. */
export interface Observer {
  began?(call: Call, operation: Operation): void
  ended(observed: Observed): void
}
