import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { verbatim } from '../access.fixture.ts'
import { initializeWith, openTestServer, token } from './server.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})
const openServer = async (settings?: Parameters<typeof openTestServer>[0]) => open.use(await openTestServer(settings))

describe('E1: bad input over HTTP gets a clear, typed error', () => {
  test.each([
    ['malformed JSON', '{"jsonrpc":"2.0",', -32700, /not valid JSON/],
    [
      'malformed JSON deep inside',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":tru}}',
      -32700,
      /not valid JSON/,
    ],
    ['an empty body', '', -32700, /not valid JSON/],
    ['a JSON value that is no object', '"hello"', -32600, /JSON-RPC/],
    ['an object that is not JSON-RPC', '{"id":1,"method":"ping"}', -32600, /"jsonrpc" must be "2.0"/],
    ['a null id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, /id/],
    ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":7}', -32600, /method/],
    ['positional params', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600, /params/],
    ['a key that occurs twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', -32600, /twice/],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, /batches/],
    [
      '90,000 levels',
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(90_000)}${']'.repeat(90_000)}}}`,
      -32600,
      /deep/,
    ],
  ])('%s is a 400', async (_name, body, code, message) => {
    const { raw, access } = await openServer()
    const { status, json } = await raw({ body })
    expect(status).toBe(400)
    // F11: it leaves one record.
    expect(access.turned).toMatchObject([{ malformed: true, detail: json?.error?.message, address: '127.0.0.1' }])
    expect(json).toMatchObject({ jsonrpc: '2.0', error: { code, message: expect.stringMatching(message) } })
  })

  test('another content type is a 415, and so is a compressed body', async () => {
    const { raw } = await openServer()
    for (const type of [undefined, 'text/plain', 'application/jsonp', 'application/x-www-form-urlencoded']) {
      expect((await raw({ body: initializeWith(), headers: { 'content-type': type } })).status).toBe(415)
    }
    expect((await raw({ body: initializeWith(), headers: { 'content-encoding': 'gzip' } })).status).toBe(415)
    expect(
      (await raw({ body: initializeWith(), headers: { 'content-type': 'Application/JSON; charset=utf-8' } })).status,
    ).toBe(200)
  })

  test('an Accept header with neither form is a 406; a missing one is taken for JSON', async () => {
    const { raw } = await openServer()
    expect((await raw({ body: initializeWith(), headers: { accept: 'text/html' } })).status).toBe(406)
    for (const accept of [undefined, '*/*', 'application/*', 'application/json']) {
      const { status, headers } = await raw({ body: initializeWith(), headers: { accept } })
      expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    }
    const streamed = await raw({ body: initializeWith(), headers: { accept: 'text/event-stream' } })
    expect([streamed.status, streamed.headers['content-type']]).toEqual([200, 'text/event-stream'])
  })

  test('a body over the limit is a 413 that closes the connection; the server keeps running', async () => {
    const { raw } = await openServer({ config: { maxBody: 1_000 } })
    const { status, json, headers } = await raw({ body: 'x'.repeat(200_000) })
    expect([status, headers.connection]).toEqual([413, 'close'])
    expect(json?.error?.message).toBe('The body is larger than 1000 bytes: send less, or raise server.maxBody.')
    expect((await raw({ body: initializeWith() })).status).toBe(200)
  })

  test('a body that never ends is answered at the limit and not read any further', async () => {
    const { server } = await openServer({ config: { maxBody: 1_000 } })
    const socket = connect(server.port, '127.0.0.1')
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost:${server.port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    let answer = ''
    let closed = false
    socket.on('data', (data) => {
      answer += data
    })
    socket
      .on('error', () => {})
      .on('close', () => {
        closed = true
      })
    const pour = () => {
      while (!closed && socket.write(chunk));
    }
    socket.on('drain', pour)
    pour()
    await until(() => closed, { what: 'the end of the connection' })
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(socket.bytesWritten).toBeLessThan(64 * 1024 * 1024)
  })

  test('a client that goes away in the middle of its body leaves nothing behind', async () => {
    const { server, clock, log } = await openServer()
    const before = clock.pending
    const socket = connect(server.port, '127.0.0.1')
    const head = `POST /mcp HTTP/1.1\r\nHost: localhost:${server.port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
    await new Promise<void>((resolve) => socket.write(head, () => resolve()))
    socket.destroy()
    await server[Symbol.asyncDispose]()
    expect(clock.pending).toBeLessThanOrEqual(before)
    expect(log.lines).toEqual([])
  })

  test('a revision that is not served is a 400 that names those that are', async () => {
    const { raw, session } = await openServer()
    const { headers, send } = await session()
    for (const revision of ['1999-01-01', '']) {
      const body = { jsonrpc: '2.0', id: 1, method: 'ping' }
      const { status, json } = await raw({ body, headers: { ...headers, 'mcp-protocol-version': revision } })
      expect(status).toBe(400)
      expect(json?.error?.message).toContain('2025-11-25')
    }
    const served = await send({ id: 1, method: 'ping' }, { headers: { 'mcp-protocol-version': '2024-11-05' } })
    expect(await served.body.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  })
})

describe('sessions over HTTP', () => {
  test('a request without a session is a 400, one with an unknown session a 404 that says what to do', async () => {
    const { raw } = await openServer()
    const body = { jsonrpc: '2.0', id: 5, method: 'tools/list' }
    expect(await raw({ body })).toMatchObject({ status: 400, json: { id: 5, error: { code: -32600 } } })
    const unknown = await raw({ body, headers: { 'mcp-session-id': 'unknown' } })
    expect(unknown).toMatchObject({
      status: 404,
      json: { id: 5, error: { code: -32001, message: expect.stringMatching(/^Session not found: .*initialize/) } },
    })
    expect((await raw({ method: 'GET' })).status).toBe(400)
    expect((await raw({ method: 'DELETE', headers: { 'mcp-session-id': 'unknown' } })).status).toBe(404)
  })

  test('G3: to another principal a session does not exist', async () => {
    const { session, raw, access } = await openServer({ people: true })
    const { headers, send } = await session({}, { authorization: 'Bearer anna-token' })
    const waiting = send({ id: 1, method: 'tools/call', params: { name: 'wait' } })
    await until(() => access.calls.length === 1, { what: 'the call' })
    const stolen = { ...headers, authorization: 'Bearer bert-token' }
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    expect((await raw({ body: { jsonrpc: '2.0', id: 1, method: 'ping' }, headers: stolen })).status).toBe(404)
    expect((await raw({ body: cancel, headers: stolen })).status).toBe(404)
    expect((await raw({ method: 'GET', headers: stolen })).status).toBe(404)
    expect((await raw({ method: 'DELETE', headers: stolen })).status).toBe(404)
    // F11: each of them leaves a record, which names nobody but who has tried.
    const detail = "session: another principal's"
    const tried = { code: 'DENIED_BY_POLICY', principal: 'bert', address: '127.0.0.1', detail }
    expect(access.turned).toEqual([tried, tried, tried, tried])
    access.release()
    expect(await (await waiting).body.json()).toMatchObject({ result: { content: [{ text: 'waited' }] } })
    expect(access.calls[0]?.caller.principal).toBe('anna')
  })

  test('DELETE ends a session and cancels its calls', async () => {
    const { session, raw, access } = await openServer()
    const { headers, send } = await session()
    const waiting = send({ id: 1, method: 'tools/call', params: { name: 'wait' } })
    await until(() => access.calls.length === 1, { what: 'the call' })
    expect((await raw({ method: 'DELETE', headers })).status).toBe(204)
    expect(access.calls[0]?.signal.aborted).toBe(true)
    expect(await (await waiting).body.text()).toBe('')
    expect((await raw({ body: { jsonrpc: '2.0', id: 2, method: 'ping' }, headers })).status).toBe(404)
  })
})

describe('B2: the legacy era over HTTP', () => {
  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2024-11-05', '2024-11-05'],
    ['2031-01-01', '2025-11-25'],
  ])('a client with the revision %s is answered in %s', async (asked, agreed) => {
    const { raw } = await openServer()
    const { json, headers } = await raw({ body: initializeWith({}, asked) })
    expect(headers['mcp-session-id']).toMatch(/^[\w-]{22}$/)
    expect(json?.result).toEqual({
      protocolVersion: agreed,
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
      serverInfo: { name: 'toolway', version: '0.0.0' },
      instructions: 'Use the tools.',
    })
  })

  test.each([
    ['says no revision', {}],
    // All that a client declares is kept as long as its session.
    ['declares no end of capabilities', { protocolVersion: '2025-11-25', capabilities: { x: 'x'.repeat(4_096) } }],
  ])('an initialize that %s is refused and opens no session', async (_what, params) => {
    const { raw } = await openServer()
    const { status, json, headers } = await raw({ body: { jsonrpc: '2.0', id: 9, method: 'initialize', params } })
    expect(status).toBe(400)
    expect(json).toMatchObject({ id: 9, error: { code: -32602 } })
    expect(headers['mcp-session-id']).toBeUndefined()
  })

  test('lists come page by page; a foreign cursor is -32602', async () => {
    const { session } = await openServer()
    const { ask } = await session()
    const first = (await ask('tools/list')).result
    expect(first.tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'verbatim'])
    const second = (await ask('tools/list', { cursor: first.nextCursor })).result
    expect(second.tools[0].name).toBe('pretty')
    expect(second).not.toHaveProperty('nextCursor')
    for (const cursor of ['third', 7]) {
      expect((await ask('tools/list', { cursor })).error?.code).toBe(-32602)
    }
    expect((await ask('resources/list')).result.resources).toHaveLength(2)
    expect((await ask('resources/templates/list')).result.resourceTemplates).toHaveLength(1)
    expect((await ask('prompts/list')).result.prompts).toHaveLength(2)
  })

  test('a result reaches the client as the bytes it came in, under the id it was asked with', async () => {
    const { session } = await openServer()
    const { send } = await session()
    for (const id of ['7', 7, 0, 'ü"']) {
      const { body, headers } = await send({ id, method: 'tools/call', params: { name: 'verbatim' } })
      const text = await body.text()
      expect(text).toBe(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${verbatim}}`)
      expect(headers['content-length']).toBe(String(Buffer.byteLength(text)))
    }
  })

  test('a call carries arguments, meta and caller; reads carry the uri; completions the argument', async () => {
    const { session, access } = await openServer()
    const { ask } = await session()
    await ask('tools/call', { name: 'echo', arguments: { a: [1] }, _meta: { 'com.example/x': 1 } })
    await ask('tools/call', { name: 'echo' })
    await ask('resources/read', { uri: 'test://42' })
    await ask('prompts/get', { name: 'greet', arguments: { who: 'me' } })
    const argument = { name: 'who', value: 'm' }
    await ask('completion/complete', {
      ref: { type: 'ref/prompt', name: 'greet' },
      argument,
      context: { arguments: {} },
    })
    await ask('completion/complete', { ref: { type: 'ref/resource', uri: 'test://{id}' }, argument })
    const seen = access.calls.map(({ entry, input }) => [entry.name, input.arguments.value, input.uri, input.meta])
    expect(seen).toEqual([
      ['echo', { a: [1] }, undefined, { 'com.example/x': 1 }],
      ['echo', {}, undefined, {}],
      ['test://{id}', {}, 'test://42', {}],
      ['greet', { who: 'me' }, undefined, {}],
      ['greet', { argument, context: { arguments: {} } }, undefined, {}],
      ['test://{id}', { argument }, 'test://{id}', {}],
    ])
    expect(new Set(access.calls.map(({ id }) => id)).size).toBe(6)
  })

  test('ids in flight are unique within a session, and number and string differ', async () => {
    const { session, access } = await openServer()
    const { send, ask } = await session()
    const other = await session()
    const waiting = send({ id: 1, method: 'tools/call', params: { name: 'wait' } })
    await until(() => access.calls.length === 1, { what: 'the call' })
    expect((await ask('ping', {}, 1)).error?.code).toBe(-32600)
    expect((await ask('ping', {}, '1')).result).toEqual({})
    expect((await other.ask('ping', {}, 1)).result).toEqual({})
    access.release()
    await (await waiting).body.dump()
    expect((await ask('ping', {}, 1)).result).toEqual({})
  })
})
