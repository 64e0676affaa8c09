import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../../core/call.fixture.ts'
import type { Observed } from '../../core/observer.ts'
import { observedOf, type Told } from '../metrics/observed.fixture.ts'
import { createCallSpans, serverFacts } from './call-spans.ts'
import { decodeSpan } from './otlp.fixture.ts'
import { serverOf } from './server.fixture.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const place = (span: string) => ({ traceparent: `00-${trace}-${span}-01` })
const own = place('aaaaaaaaaaaaaaaa')
const first = place('1111111111111111')
const second = place('2222222222222222')
const client = place('cccccccccccccccc')

const servers = new Map([
  ['files', serverFacts(serverOf({ command: 'files' }, '2025-11-25'))],
  ['web', serverFacts(serverOf({ url: 'https://user:pw@web.example/secret' }))],
])

interface Written {
  readonly [field: string]: unknown
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: number } }[]
}

/** The spans of a call, as a receiver reads them. */
function spansOf(told: Told, redact = (text: string) => text) {
  const observed: Observed = observedOf({ trail: { steps: [], trace: own }, ...told })
  return createCallSpans({ clock: createManualClock(), redact, servers })(observed).map((encoded) => {
    const { attributes = [], status, ...span } = decodeSpan(encoded) as unknown as Written
    const values = attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue])
    return { ...span, status, attributes: Object.fromEntries(values) } as Record<string, unknown> & {
      attributes: Record<string, unknown>
    }
  })
}

describe('F16: the span of a call', () => {
  test('has the names of the MCP conventions', () => {
    const peer = { ...callOf().peer, request: { id: 7, revision: '2025-11-25' } }
    const caller = { ...callOf().caller, address: '127.0.0.1', session: 'abc' }
    const [span, ...others] = spansOf({ call: { caller, peer, input: { ...callOf().input, meta: { ...client } } } })
    expect(others).toEqual([])
    expect(span).toEqual({
      traceId: trace,
      spanId: 'aaaaaaaaaaaaaaaa',
      parentSpanId: 'cccccccccccccccc',
      flags: 0x301,
      name: 'tools/call read',
      kind: 2,
      startTimeUnixNano: expect.stringMatching(/^\d{16}000$/),
      endTimeUnixNano: expect.stringMatching(/^\d{16}000$/),
      status: {},
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'read',
        'tool.type': 'forwarded',
        'toolway.server': 'files',
        'toolway.agent': 'default',
        'toolway.call.id': 'c1',
        'jsonrpc.request.id': '7',
        'mcp.protocol.version': '2025-11-25',
        'mcp.session.id': 'abc',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
      },
    })
    expect(Number(span?.endTimeUnixNano) - Number(span?.startTimeUnixNano)).toBeCloseTo(10e6, -4)
  })

  test('begins a trace if the client has none', () => {
    const [span] = spansOf({})
    expect(span).not.toHaveProperty('parentSpanId')
    expect(span?.flags).toBe(0x101)
  })

  test('of a nested call has the outer call as its parent, not the client', () => {
    const [span] = spansOf({ call: { parent: 'c0', trace: client } })
    expect(span).toMatchObject({ kind: 1, parentSpanId: 'cccccccccccccccc', flags: 0x101 })
  })

  test.each([
    ['answered', undefined, {}, {}],
    ['tool_error', undefined, { code: 2 }, { 'error.type': 'tool_error' }],
    ['denied', 'TOOL_BLOCKED', { code: 2 }, { 'error.type': 'TOOL_BLOCKED' }],
    ['failed', 'TIMEOUT', { code: 2 }, { 'error.type': 'TIMEOUT' }],
    ['failed', 'rpc -32602', { code: 2 }, { 'error.type': '-32602', 'rpc.response.status_code': '-32602' }],
  ] as const)('that is %s (%s)', (kind, code, status, attributes) => {
    const [span] = spansOf({ outcome: { kind, ...(code && { code }) } })
    expect(span).toMatchObject({ status, attributes })
    if (kind === 'answered') expect(span?.attributes).not.toHaveProperty('error.type')
  })

  test('of a native tool says so', () => {
    const [span] = spansOf({ call: { entry: entryOf({ server: 'native', name: 'hash' }) } })
    expect(span?.attributes).toMatchObject({ 'tool.type': 'native', 'toolway.server': 'native' })
  })

  test.each([
    ['read_resource', 'resource', 'resources/read', { 'mcp.resource.uri': 'file:///a' }],
    ['read_resource', 'template', 'resources/read', { 'mcp.resource.uri': 'file:///a' }],
    ['subscribe', 'resource', 'resources/subscribe', { 'mcp.resource.uri': 'file:///a' }],
    ['get_prompt', 'prompt', 'prompts/get read', { 'gen_ai.prompt.name': 'read' }],
    ['complete', 'prompt', 'completion/complete read', { 'gen_ai.prompt.name': 'read' }],
    ['tasks/get', 'tool', 'tasks/get read', { 'gen_ai.tool.name': 'read' }],
  ] as const)('of %s on a %s is called %s', (operation, kind, name, attributes) => {
    const input = { ...callOf().input, uri: 'file:///a' }
    const [span] = spansOf({ operation, call: { entry: entryOf({ kind }), input } })
    expect(span).toMatchObject({ name, attributes })
    expect(span?.attributes).not.toHaveProperty('gen_ai.operation.name')
  })

  test('has an attribute for the cache', () => {
    expect(spansOf({ trail: { steps: [], trace: own, cache: 'hit' } })[0]?.attributes['toolway.cache']).toBe('hit')
  })

  test('B6: has no secret in any name', () => {
    const redact = (text: string) => text.replaceAll('hunter2', '[redacted]')
    const entry = entryOf({ kind: 'resource', server: 'hunter2', name: 'pg://me:hunter2@h/db' })
    const spans = spansOf({ agent: 'hunter2', call: { entry } }, redact)
    expect(JSON.stringify(spans)).not.toContain('hunter2')
    expect(spans[0]?.attributes['mcp.resource.uri']).toBe('pg://me:[redacted]@h/db')
    const tool = spansOf({ call: { entry: entryOf({ name: 'hunter2' }) } }, redact)
    expect(tool[0]?.name).toBe('tools/call [redacted]')
  })

  test('has well-formed text, which receivers require, and names of limited length', () => {
    const [span] = spansOf({ call: { entry: entryOf({ name: `\ud800"\\\n${'x'.repeat(2_000)}😀` }) } })
    const name = span?.attributes['gen_ai.tool.name'] as string
    expect(name).toHaveLength(1_024)
    expect(name.slice(0, 5)).toBe('\ufffd"\\\nx')
    expect(String(span?.name).isWellFormed()).toBe(true)
    expect(String(span?.name).length).toBeLessThan(1_100)
  })
})

describe('F16: the spans inside a call', () => {
  test('each attempt is a client span, with the attributes of its server', () => {
    const steps = [
      { name: 'attempt', start: 1_001, end: 1_003, error: 'SERVER_UNAVAILABLE', trace: first },
      { name: 'attempt', start: 1_005, end: 1_009, trace: second },
    ] as const
    const [call, failed, last] = spansOf({ trail: { steps: [...steps], trace: own } })
    const common = { traceId: trace, parentSpanId: 'aaaaaaaaaaaaaaaa', name: 'tools/call read', kind: 3 }
    expect(failed).toMatchObject({
      ...common,
      spanId: '1111111111111111',
      status: { code: 2 },
      attributes: {
        'error.type': 'SERVER_UNAVAILABLE',
        'network.transport': 'pipe',
        'toolway.server': 'files',
        'mcp.protocol.version': '2025-11-25',
      },
    })
    expect(last).toMatchObject({
      ...common,
      spanId: '2222222222222222',
      status: {},
      attributes: { 'toolway.attempt': 2 },
    })
    expect(Number(last?.startTimeUnixNano)).toBeGreaterThan(Number(call?.startTimeUnixNano))
    expect(Number(last?.endTimeUnixNano)).toBeLessThan(Number(call?.endTimeUnixNano))
  })

  test('B6: only the host and port of a server’s address are attributes', () => {
    const trail = { steps: [{ name: 'attempt', start: 1_001, end: 1_003, trace: first } as const], trace: own }
    const spans = spansOf({ call: { entry: entryOf({ server: 'web' }) }, trail })
    expect(spans[1]?.attributes).toMatchObject({
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'server.address': 'web.example',
      'server.port': 443,
    })
    expect(JSON.stringify(spans)).not.toMatch(/secret|pw/)
  })

  test('waiting for a place is part of the attempt, asking a person part of the call', () => {
    const steps = [
      { name: 'approve', start: 1_001, end: 1_002 },
      { name: 'attempt', start: 1_002, end: 1_009, trace: first },
      { name: 'queue', start: 1_002, end: 1_004 },
    ] as const
    const [, approve, attempt, queue] = spansOf({ trail: { steps: [...steps], trace: own } })
    expect(approve).toMatchObject({ name: 'approve', kind: 1, parentSpanId: 'aaaaaaaaaaaaaaaa' })
    expect(queue).toMatchObject({ name: 'queue', kind: 1, parentSpanId: '1111111111111111' })
    expect(new Set([approve?.spanId, attempt?.spanId, queue?.spanId]).size).toBe(3)
  })

  test('a step that is running when the call ends, ends with it', () => {
    const trail = { steps: [{ name: 'attempt', start: 1_001, trace: first } as const], trace: own }
    const [call, attempt] = spansOf({ outcome: { kind: 'failed', code: 'TIMEOUT' }, trail })
    expect(attempt).toMatchObject({ attributes: { 'error.type': 'TIMEOUT' }, endTimeUnixNano: call?.endTimeUnixNano })
  })

  test('a tool’s own failure is that of the attempt that brought it', () => {
    const trail = { steps: [{ name: 'attempt', start: 1_001, end: 1_002, trace: first } as const], trace: own }
    expect(spansOf({ outcome: { kind: 'tool_error' }, trail })[1]?.attributes['error.type']).toBe('tool_error')
  })

  test('a call inside this process has no client span', () => {
    const trail = { steps: [{ name: 'attempt', start: 1_001, end: 1_002 } as const], trace: own }
    expect(spansOf({ call: { entry: entryOf({ server: 'native' }) }, trail })).toHaveLength(1)
  })
})
