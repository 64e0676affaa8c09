import type { Operation } from './audit.ts'
import type { Call } from './call.ts'
import type { Trail } from './trail.ts'

/** How an operation ended. `answered` with `isError` is a tool's own failure, `failed` is ours or a server's. */
export interface CallOutcome {
  readonly kind: 'answered' | 'tool_error' | 'denied' | 'failed'
  /** One of our codes, or `rpc -32602` for a server's own error. */
  readonly code?: string
}

/** An operation that is over, with all that happened to it. */
export interface Observed {
  readonly call: Call
  readonly operation: Operation
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  /** When it began, by the monotonic clock that the steps of its trail go by. */
  readonly start: number
  readonly ms: number
  readonly outcome: CallOutcome
  readonly trail: Trail
}

/** Whoever watches calls. Must not throw, must not keep the call's arguments or result. */
export interface Observer {
  began?(call: Call, operation: Operation): void
  ended(observed: Observed): void
}
