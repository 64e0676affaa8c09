import type { Operation } from './audit.ts'
import type { Call } from './call.ts'
import type { Trail } from './trail.ts'

/** How a call ended. `tool_error`: the tool set `isError`. `failed`: Toolway or the server returned an error. */
export interface CallOutcome {
  readonly kind: 'answered' | 'tool_error' | 'denied' | 'failed'
  /** One of our codes, or `rpc -32602` for a server's own error. */
  readonly code?: string
}

export interface Observed {
  readonly call: Call
  readonly operation: Operation
  /** When the call began, in milliseconds since the epoch. */
  readonly at: number
  /** When the call began, on the monotonic clock that the trail's steps use. */
  readonly start: number
  readonly ms: number
  readonly outcome: CallOutcome
  readonly trail: Trail
}

/** An observer of calls. It must not throw, and must not keep a call's arguments or result. */
export interface Observer {
  began?(call: Call, operation: Operation): void
  ended(observed: Observed): void
}
