import type { Operation } from './audit.ts'
import type { Call, Trail } from './call.ts'
import type { CallOutcome } from './outcome.ts'
import { metaSource } from './source.ts'
import type { TraceContext } from './trace-context.ts'

export interface Observed {
  readonly call: Call
  readonly operation: Operation
  /** When the call began, in milliseconds since the epoch. */
  readonly at: number
  /** When the call began, on the monotonic clock that the trail's steps use. */
  readonly start: number
  /** When the call ended, on the same clock. */
  readonly end: number
  /** The latency: the duration without the time in which the call waited for people. */
  readonly ms: number
  readonly outcome: CallOutcome
  readonly trail: Trail
}

/** An operation as statistics name it: meta-tools by their names, apart from the tools that they call (G9). */
export const statisticsOperation = (operation: Operation, server: string, name: string): Operation =>
  operation === 'call_tool' && server === metaSource ? name : operation

/** An observer of calls. It must not throw, and must not keep a call's arguments or result. */
export interface Observer {
  began?(call: Call, operation: Operation): void
  ended(observed: Observed): void
}

/** Assigns a trace context to a call before it runs, because the context is sent to the server (F16). */
export interface Tracing {
  enter(call: Call): TraceContext
  /** The trace context of one attempt; undefined if the attempt has no span of its own. */
  attempt(call: Call): TraceContext | undefined
}
