import type { Call } from './call.ts'
import type { TraceContext } from './trace-context.ts'

/** Gives calls their places in traces, before anything happens to them: servers have to know theirs (F16). */
export interface Tracing {
  /** The place of a call that comes in, behind whoever made it. */
  enter(call: Call): TraceContext
  /** The place of one attempt at a call; undefined where the attempt has none of its own. */
  attempt(call: Call): TraceContext | undefined
}
