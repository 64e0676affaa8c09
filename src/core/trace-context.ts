/** A place in a distributed trace, as the W3C writes it in headers and MCP in `_meta`. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
  readonly baggage?: string
}
