import type { Call } from './call.ts'
import type { TraceContext } from './trace-context.ts'

/** Assigns trace contexts before a call runs, because servers receive them (F16). */
export interface Tracing {
  enter(call: Call): TraceContext
  /** The context of one attempt; undefined if it has no span of its own. */
  attempt(call: Call): TraceContext | undefined
}
