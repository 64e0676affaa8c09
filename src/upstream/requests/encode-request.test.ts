import { describe, expect, test } from 'vitest'
import type { InitializedConnection } from '../connection/handshake.ts'
import { encodeRequest, type RequestSpec } from './encode-request.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

/** The params and the headers that a server of this era receives. */
function said(era: 'legacy' | 'modern', what: Partial<RequestSpec>) {
  const line = { handshake: { era }, identity: { name: 'toolway', version: '0' } } as InitializedConnection
  const { signal } = new AbortController()
  const members = [Buffer.from('"name":"x"')]
  const request = encodeRequest(line, { method: 'tools/call', name: 'x', members, capabilities: {}, signal, ...what })
  return { params: JSON.parse(String(request.params(1))), headers: request.headers }
}

describe.each(['legacy', 'modern'] as const)('F16: to a server of the %s era', (era) => {
  test('the place in a trace goes in `_meta` and in the headers, in place of the caller’s', () => {
    const meta = { traceparent: 'theirs', tracestate: 'theirs', 'example.com/x': 1 }
    const { params, headers } = said(era, { meta, trace: { traceparent, baggage: 'b=2' } })
    expect(params._meta).toMatchObject({ traceparent, baggage: 'b=2', 'example.com/x': 1 })
    expect(params._meta).not.toHaveProperty('tracestate')
    expect(headers).toMatchObject({ traceparent, baggage: 'b=2' })
  })

  test('without a trace context, `_meta` is passed on unchanged and no header is sent', () => {
    const meta = { traceparent: 'theirs', tracestate: 'as it = came', baggage: 7 }
    const { params, headers = {} } = said(era, { meta })
    expect(params._meta).toMatchObject(meta)
    expect(headers).not.toHaveProperty('traceparent')
  })
})

test('F16: without tracing and metadata, nothing is added', () => {
  expect(said('legacy', {})).toEqual({ params: { name: 'x' }, headers: undefined })
})
