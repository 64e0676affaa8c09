import type { Call } from './call.ts'

/** A place in a distributed trace, as the W3C writes it in headers and MCP in `_meta`. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
  readonly baggage?: string
}

/** Gives calls their places in traces, before anything happens to them: servers have to know theirs (F16). */
export interface Tracing {
  /** The place of a call that comes in, behind whoever made it. */
  enter(call: Call): TraceContext
  /** The place of one attempt at a call; undefined where the attempt has none of its own. */
  attempt(call: Call): TraceContext | undefined
}
