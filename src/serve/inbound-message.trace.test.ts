import { describe, expect, test } from 'vitest'
import { openTestServer } from './http/server.fixture.ts'
import { type InboundRequest, withTraceContext } from './inbound-message.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const inHeader = `00-${trace}-1111111111111111-01`
const inMeta = `00-${trace}-2222222222222222-01`

const request = (params: object = {}): InboundRequest => ({
  kind: 'request',
  id: 1,
  method: 'tools/call',
  params: { ...params },
})
const metaOf = (params: object, headers: object) =>
  (withTraceContext(request(params), { ...headers }) as InboundRequest).params

describe('F16: a trace context in HTTP headers', () => {
  test('is used as if it were in `_meta`', () => {
    const headers = { traceparent: inHeader, tracestate: 'a=1', baggage: 'b=2', other: '3' }
    expect(metaOf({ name: 'x', _meta: { progressToken: 7 } }, headers)).toEqual({
      name: 'x',
      _meta: { progressToken: 7, traceparent: inHeader, tracestate: 'a=1', baggage: 'b=2' },
    })
    expect(metaOf({}, { traceparent: inHeader })).toEqual({ _meta: { traceparent: inHeader } })
  })

  test('is ignored if `_meta` has one', () => {
    const params = { _meta: { traceparent: inMeta } }
    const inbound = request(params)
    expect(withTraceContext(inbound, { traceparent: inHeader, tracestate: 'a=1' })).toBe(inbound)
  })

  test('replaces a malformed one in `_meta`', () => {
    const params = { _meta: { traceparent: 'nonsense', tracestate: 'a=1' } }
    const text = JSON.stringify(metaOf(params, { traceparent: inHeader }))
    expect(JSON.parse(text)).toEqual({ _meta: { traceparent: inHeader } })
  })

  test.each([{}, { traceparent: 'nonsense' }, { tracestate: 'a=1', baggage: 'not a list' }])(
    'is ignored with %j',
    (headers) => {
      const inbound = request({ _meta: {} })
      expect(withTraceContext(inbound, headers)).toBe(inbound)
    },
  )

  test('may be baggage alone, unless `_meta` has some', () => {
    const headers = { tracestate: 'a=1', baggage: 'b=2' }
    expect(metaOf({ _meta: { progressToken: 7 } }, headers)).toEqual({ _meta: { progressToken: 7, baggage: 'b=2' } })
    expect(metaOf({ _meta: { baggage: 7 } }, headers)).toEqual({ _meta: { baggage: 'b=2' } })
    expect(metaOf({ _meta: { baggage: 'c=3' } }, headers)).toEqual({ _meta: { baggage: 'c=3' } })
  })

  test('does not change notifications or an invalid _meta', () => {
    const notification = { kind: 'notification', method: 'x', params: {} } as const
    expect(withTraceContext(notification, { traceparent: inHeader })).toBe(notification)
    const odd = request({ _meta: 'text' })
    expect(withTraceContext(odd, { traceparent: inHeader })).toBe(odd)
  })
})

describe('F16: in front ends', () => {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' }

  const call = (_meta?: object) => ({ jsonrpc: '2.0', id: 'r1', method: 'tools/call', params: { name: 'echo', _meta } })

  test.each([
    ['sessions', '2025-11-25'],
    ['none', '2026-07-28'],
  ])(
    'headers count if calls are traced, in the era with %s; the id and revision of the request are known',
    async (era, revision) => {
      await using server = await openTestServer({ traced: () => true })
      const headers = era === 'none' ? modern : (await server.session()).headers
      const body = call(era === 'none' ? envelope : undefined)
      await server.raw({ body, headers: { ...headers, traceparent: inHeader, tracestate: 'a=1' } })
      expect(server.access.calls[0]?.input.meta).toEqual({ traceparent: inHeader, tracestate: 'a=1' })
      expect(server.access.calls[0]?.peer.request).toEqual({ id: 'r1', revision })
    },
  )

  test('for each message of a batch', async () => {
    await using server = await openTestServer({ traced: () => true })
    const { headers } = await server.session({}, {}, '2025-03-26')
    const body = JSON.stringify([call(), { ...call({ traceparent: inMeta }), id: 'r2' }])
    await server.raw({ body, headers: { ...headers, traceparent: inHeader } })
    const places = server.access.calls.map(({ input }) => input.meta.traceparent)
    expect(places.sort()).toEqual([inHeader, inMeta])
  })

  test('if they are not, `_meta` is passed on unchanged and headers are ignored', async () => {
    await using server = await openTestServer()
    const { headers } = await server.session()
    const meta = { traceparent: inMeta, tracestate: 'whatever, even = this' }
    await server.raw({ body: call(meta), headers: { ...headers, traceparent: inHeader } })
    await server.raw({ body: { ...call(), id: 'r2' }, headers: { ...headers, traceparent: inHeader } })
    expect(server.access.calls.map(({ input }) => input.meta)).toEqual([meta, {}])
  })
})
