import type { IncomingHttpHeaders } from 'node:http'
import { readTraceContext } from '../core/read-trace-context.ts'
import { type Inbound, isObject, type Unreadable } from './inbound.ts'

/**
 * Puts the place in a trace that HTTP headers tell of where MCP has it, in the request's `_meta`. What stands there
 * already counts more: it is about this one message, and not about whatever carried it (F16).
 */
export function withTraceOf(inbound: Inbound | Unreadable, headers: IncomingHttpHeaders): Inbound | Unreadable {
  if (inbound.kind !== 'request' || headers.traceparent === undefined) return inbound
  const { params } = inbound
  const { _meta = {} } = params
  if (!isObject(_meta) || readTraceContext(_meta) !== undefined) return inbound
  const context = readTraceContext(headers)
  if (context === undefined) return inbound
  return { ...inbound, params: { ...params, _meta: { ..._meta, tracestate: undefined, ...context } } }
}
