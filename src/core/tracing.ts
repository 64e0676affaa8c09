import type { Call } from './call.ts'
import type { TraceContext } from './trace-context.ts'

/** Assigns a trace context to a call before it runs, because the context is sent to the server (F16). */
export interface Tracing {
  enter(call: Call): TraceContext
  /** The trace context of one attempt; undefined if the attempt has no span of its own. */
  attempt(call: Call): TraceContext | undefined
}
