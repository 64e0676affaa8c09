import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { initializeWith } from '../http/server.fixture.ts'
import { metaOf, openStatelessServer, prefix, type Sending } from './stateless.fixture.ts'

let server: Awaited<ReturnType<typeof openStatelessServer>>
beforeAll(async () => {
  server = await openStatelessServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const key = (name: string) => `${prefix}${name}`
const modernHeader = { 'mcp-protocol-version': '2026-07-28' }

interface Row {
  readonly what: string
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly sending?: Sending
  readonly status?: number
  readonly code: number
  readonly data?: unknown
}

const mismatch = { mismatch: { header: expect.any(String), body: expect.any(String) } }
const missing = (body: string) => ({ mismatch: { header: '(missing)', body } })
const echo = { name: 'echo', arguments: {} }
const inHeaders = (args: object) => ({ name: 'in_headers', arguments: args })

const rows: readonly Row[] = [
  {
    what: 'a claim without capabilities',
    sending: { meta: { [key('clientCapabilities')]: undefined } },
    code: -32602,
    data: { envelope: { key: key('clientCapabilities'), problem: 'missing' } },
  },
  {
    what: 'capabilities that are no object',
    sending: { meta: { [key('clientCapabilities')]: [] } },
    code: -32602,
    data: { envelope: { key: key('clientCapabilities'), problem: 'must be an object' } },
  },
  {
    what: 'a capability that is no object',
    sending: { capabilities: { sampling: true } },
    code: -32602,
    data: { envelope: { key: `${key('clientCapabilities')}.sampling`, problem: 'must be an object' } },
  },
  {
    what: 'a client without a version',
    sending: { meta: { [key('clientInfo')]: { name: 'x' } } },
    code: -32602,
    data: { envelope: { key: key('clientInfo'), problem: 'must have a name and a version' } },
  },
  {
    what: 'an unknown log level',
    sending: { logLevel: 'loud' },
    code: -32602,
    data: { envelope: { key: key('logLevel'), problem: expect.any(String) } },
  },
  {
    what: 'a version that is no text',
    sending: { meta: { [key('protocolVersion')]: 7 } },
    code: -32602,
    data: { envelope: { key: key('protocolVersion'), problem: 'must be a string' } },
  },
  {
    what: 'more capabilities than anybody would keep',
    sending: { meta: { [key('clientCapabilities')]: { experimental: { x: 'x'.repeat(4_096) } } } },
    code: -32602,
    data: { envelope: { key: key('clientCapabilities'), problem: 'must not have more than 4096 characters' } },
  },
  {
    what: 'no version header',
    sending: { headers: { 'mcp-protocol-version': undefined } },
    code: -32020,
    data: missing('2026-07-28'),
  },
  {
    what: 'neither header, of which the first is named',
    sending: { headers: { 'mcp-protocol-version': undefined, 'mcp-method': undefined } },
    code: -32020,
    data: missing('2026-07-28'),
  },
  {
    what: 'another version in the header',
    sending: { headers: { 'mcp-protocol-version': '2025-11-25' } },
    code: -32020,
    data: { mismatch: { header: '2025-11-25', body: '2026-07-28' } },
  },
  {
    what: 'an unknown version in the body alone',
    sending: { meta: { [key('protocolVersion')]: '2099-01-01' } },
    code: -32020,
    data: { mismatch: { header: '2026-07-28', body: '2099-01-01' } },
  },
  ...['2099-01-01', 'v999.0.0', '2025-11-25', 'x'.repeat(300)].map((version) => ({
    what: `the version ${version.slice(0, 20)} in both`,
    sending: { meta: { [key('protocolVersion')]: version }, headers: { 'mcp-protocol-version': version } },
    code: -32022,
    data: { supported: ['2026-07-28'], requested: version },
  })),
  {
    what: 'an unknown version and no method header, of which the version is named',
    sending: {
      meta: { [key('protocolVersion')]: '2099-01-01' },
      headers: { 'mcp-protocol-version': '2099-01-01', 'mcp-method': undefined },
    },
    code: -32022,
  },
  {
    what: 'no method header',
    sending: { headers: { 'mcp-method': undefined } },
    code: -32020,
    data: missing('tools/list'),
  },
  {
    what: 'another method in the header',
    sending: { headers: { 'mcp-method': 'tools/call' } },
    code: -32020,
    data: mismatch,
  },
  {
    what: 'the method in another case',
    sending: { headers: { 'mcp-method': 'Tools/List' } },
    code: -32020,
    data: mismatch,
  },
  {
    what: 'a method header that disagrees before the version is looked at',
    sending: {
      meta: { [key('protocolVersion')]: '2099-01-01' },
      headers: { 'mcp-protocol-version': '2099-01-01', 'mcp-method': 'x' },
    },
    code: -32020,
  },
  ...['tools/call', 'prompts/get'].map((method) => ({
    what: `no name header for ${method}`,
    method,
    params: echo,
    sending: { headers: { 'mcp-name': undefined } },
    code: -32020,
    data: missing('echo'),
  })),
  {
    what: 'no name header for resources/read',
    method: 'resources/read',
    params: { uri: 'test://static' },
    sending: { headers: { 'mcp-name': undefined } },
    code: -32020,
    data: missing('test://static'),
  },
  {
    what: 'another name in the header',
    method: 'tools/call',
    params: echo,
    sending: { headers: { 'mcp-name': 'verbatim' } },
    code: -32020,
    data: { mismatch: { header: 'verbatim', body: 'echo' } },
  },
  {
    what: 'a name header that is no base64',
    method: 'tools/call',
    params: echo,
    sending: { headers: { 'mcp-name': '=?base64?ZWNoby?=' } },
    code: -32020,
    data: mismatch,
  },
  {
    what: 'no header for an argument that wants one',
    method: 'tools/call',
    params: inHeaders({ region: 'north' }),
    code: -32020,
    data: missing('north'),
  },
  {
    what: 'no header for an argument deep inside',
    method: 'tools/call',
    params: inHeaders({ deep: { dry: false } }),
    code: -32020,
    data: missing('false'),
  },
  {
    what: 'another argument in the header',
    method: 'tools/call',
    params: inHeaders({ region: 'north' }),
    sending: { headers: { 'mcp-param-region': 'south' } },
    code: -32020,
    data: { mismatch: { header: 'south', body: 'north' } },
  },
  {
    what: 'an argument header that is no base64',
    method: 'tools/call',
    params: inHeaders({ region: 'A' }),
    sending: { headers: { 'mcp-param-region': '=?base64?QR==?=' } },
    code: -32020,
    data: mismatch,
  },
  ...[
    'ping',
    'initialize',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/list',
    'tasks/result',
    'sampling/createMessage',
    'elicitation/create',
    'roots/list',
    'unknown/method',
    'constructor',
  ].map((method) => ({ what: `the method ${method}`, method, status: 404, code: -32601 })),
  ...[
    ['a call without a name', 'tools/call', { arguments: {} }],
    ['arguments that are no object', 'tools/call', { name: 'echo', arguments: [] }],
    ['an unknown tool', 'tools/call', { name: 'nothing' }],
    ['an unknown prompt', 'prompts/get', { name: 'nothing' }],
    ['a cursor that we never gave out', 'tools/list', { cursor: 'x' }],
    ['a completion of nothing', 'completion/complete', {}],
    ['a stream that listens for nothing it names', 'subscriptions/listen', {}],
    [
      'a stream with a filter of the wrong shape',
      'subscriptions/listen',
      { notifications: { toolsListChanged: 'yes' } },
    ],
    [
      'a stream with URIs of the wrong shape',
      'subscriptions/listen',
      { notifications: { resourceSubscriptions: 'x' } },
    ],
  ].map(([what, method, params]) => ({ what, method, params, status: 200, code: -32602 }) as Row),
  {
    what: 'an unknown resource',
    method: 'resources/read',
    params: { uri: 'nothing://here' },
    status: 200,
    code: -32602,
    data: { code: 'TOOL_NOT_FOUND', uri: 'nothing://here' },
  },
  ...[7, null, {}].map((requestState) => ({
    what: `a state that is ${JSON.stringify(requestState)}`,
    method: 'tools/call',
    params: { ...echo, requestState },
    status: 200,
    code: -32602,
    data: { reason: 'invalid_request_state' },
  })),
  {
    what: 'a forged state of our form',
    method: 'tools/call',
    params: { ...echo, requestState: 'toolway-call.x.1.y' },
    status: 200,
    code: -32602,
    data: { reason: 'invalid_request_state' },
  },
]

describe('B2: what a request of the stateless era is refused for', () => {
  test.each(rows)('$what: $code', async ({ method = 'tools/list', params, sending, status = 400, code, data }) => {
    const answer = await server.ask(method, params, { id: 'the id', ...sending })
    expect(answer).toMatchObject({ status, id: 'the id', error: { code, message: expect.any(String) } })
    if (data !== undefined) expect(answer.error?.data).toEqual(data)
    expect(answer.headers['content-type']).toBe('application/json')
  })

  test('a version of the stateless era in the header alone names what the body lacks', async () => {
    const request = (params?: object) =>
      server.raw({ body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params }, headers: modernHeader })
    expect(await request()).toMatchObject({
      status: 400,
      json: { id: 1, error: { code: -32602, data: { envelope: { missing: ['_meta'] } } } },
    })
    const partly = { ...metaOf(), [key('protocolVersion')]: undefined }
    expect((await request({ _meta: partly })).json?.error?.data).toEqual({
      envelope: { missing: [key('protocolVersion')] },
    })
    expect((await request({ _meta: {} })).json?.error?.data).toEqual({
      envelope: { missing: [key('protocolVersion'), key('clientCapabilities')] },
    })
  })

  test('a header that is not a version is not taken for one of the stateless era', async () => {
    const headers = { 'mcp-protocol-version': 'junk' }
    for (const body of [{ jsonrpc: '2.0', id: 0, method: 'tools/list' }, initializeWith()]) {
      const { status, json } = await server.raw({ body, headers })
      expect([status, json?.error?.code, json?.error?.data]).toEqual([400, -32602, undefined])
      expect(json?.error?.message).toContain('not a protocol version')
    }
  })

  test('"initialize" opens a session, and the header must not say that there are none', async () => {
    const { status, json } = await server.raw({ body: initializeWith(), headers: modernHeader })
    expect([status, json?.error?.code, json?.id]).toEqual([400, -32020, 0])
    const legacyClaim = { ...initializeWith().params, _meta: { [key('protocolVersion')]: '2025-11-25' } }
    const opened = await server.raw({ body: { ...initializeWith(), params: legacyClaim } })
    expect([opened.status, opened.json?.result.protocolVersion]).toEqual([200, '2025-11-25'])
    const asked = await server.raw({ body: initializeWith({}, '2026-07-28') })
    expect(asked.json?.result.protocolVersion).toBe('2025-11-25')
  })

  test('a body that is not one message is refused before its era is determined', async () => {
    const batch = await server.raw({
      body: [{ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: metaOf() } }],
      headers: modernHeader,
    })
    expect([batch.status, batch.json?.error?.code, batch.json?.id]).toEqual([400, -32600, null])
    const broken = await server.raw({ body: '{', headers: modernHeader })
    expect([broken.status, broken.json?.error?.code, broken.json?.id]).toEqual([400, -32700, null])
    const type = { ...modernHeader, 'content-type': 'text/plain' }
    expect((await server.raw({ body: '{}', headers: type })).status).toBe(415)
    expect((await server.raw({ body: `"${'x'.repeat(300_000)}"`, headers: modernHeader })).status).toBe(413)
    const host = { ...modernHeader, host: 'evil.example.com' }
    expect((await server.raw({ body: '{}', headers: host })).status).toBe(403)
    const stranger = { ...modernHeader, authorization: undefined }
    expect((await server.raw({ body: '{}', headers: stranger })).status).toBe(401)
  })

  test('GET and DELETE belong to the sessions of the other era', async () => {
    for (const method of ['GET', 'DELETE'] as const) {
      expect((await server.raw({ method })).status).toBe(400)
      expect((await server.raw({ method, headers: { 'mcp-session-id': 'unknown' } })).status).toBe(404)
    }
  })

  test('a notification is accepted, unless it contradicts its headers', async () => {
    const notify = (params: object | undefined, headers: Record<string, string> = {}) =>
      server.raw({ body: { jsonrpc: '2.0', method: 'notifications/cancelled', params }, headers })
    expect((await notify({ requestId: 1, _meta: metaOf() })).status).toBe(202)
    expect((await notify({ requestId: 1 }, modernHeader)).status).toBe(202)
    expect((await notify({ _meta: { [key('protocolVersion')]: '2026-07-28' } })).status).toBe(202)
    const wrong = await notify(undefined, { ...modernHeader, 'mcp-method': 'notifications/other' })
    expect([wrong.status, wrong.json?.error?.code, wrong.json?.id]).toEqual([400, -32020, null])
    const other = await notify({ _meta: metaOf() }, { 'mcp-protocol-version': '2025-11-25' })
    expect(other.json?.error?.code).toBe(-32020)
    expect((await notify({ _meta: { [key('protocolVersion')]: 1 } })).json?.error?.code).toBe(-32602)
    expect((await notify(undefined, { 'mcp-protocol-version': '2099-01-01' })).json?.error?.code).toBe(-32022)
    // Without a word about the era it is for a session, of which there is none.
    expect((await notify({ requestId: 1 })).status).toBe(400)
  })
})

describe('B2: accepted requests', () => {
  test.each([
    ['no client info', { meta: { [key('clientInfo')]: undefined } }],
    ['capabilities nobody knows', { capabilities: { other: true, roots: {} } }],
    [
      'space around the headers',
      { headers: { 'mcp-method': ' tools/list ', 'mcp-protocol-version': '\t2026-07-28 ' } },
    ],
    ['a name header where none is needed', { headers: { 'mcp-name': '=?base64?!?=' } }],
    ['a session of the other era', { headers: { 'mcp-session-id': 'unknown', 'last-event-id': '7' } }],
    ['any Accept header', { headers: { accept: 'text/html' } }],
    ['no Accept header', { headers: { accept: undefined } }],
  ] as [string, Sending][])('%s', async (_what, sending) => {
    const { status, result } = await server.ask('tools/list', {}, sending)
    expect([status, result.resultType]).toEqual([200, 'complete'])
  })

  test.each([
    ['plain', { region: 'north', count: 42 }, { 'mcp-param-region': 'north', 'mcp-param-count': '42' }],
    ['as base64', { region: 'Zürich' }, { 'mcp-param-region': '=?base64?WsO8cmljaA==?=' }],
    ['another spelling of a number', { count: 42 }, { 'mcp-param-count': '42.0' }],
    ['null', { region: null }, {}],
    ['missing', {}, { 'mcp-param-region': 'left over' }],
    ['deep inside', { deep: { dry: true } }, { 'mcp-param-dry': 'true' }],
    ['of a type that no header has', { region: { a: 1 } }, {}],
  ])('an argument that is %s, with its header', async (_what, args, headers) => {
    const { status, result } = await server.ask('tools/call', inHeaders(args), { headers })
    expect([status, result?.content[0].text]).toEqual([200, JSON.stringify(args)])
  })
})
