import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../tests/fixtures/until.ts'
import { serverError, verbatim } from '../access.fixture.ts'
import { events } from '../http/server.fixture.ts'
import { moreWanted, openStatelessServer, prefix, serverErrors } from './stateless.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

const openServer = async (settings?: Parameters<typeof openStatelessServer>[0]) =>
  open.use(await openStatelessServer(settings))
const serverInfo = { [`${prefix}serverInfo`]: { name: 'toolway', version: '0.0.0' } }
const hint = { ttlMs: 60_000, cacheScope: 'private' }

describe('B2: the stateless era over HTTP', () => {
  test('server/discover returns the revisions, capabilities, instructions, lifetime and server info', async () => {
    const { ask, access } = await openServer()
    expect((await ask('server/discover')).result).toEqual({
      supportedVersions: ['2026-07-28'],
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
      instructions: 'Use the tools.',
      resultType: 'complete',
      ...hint,
      _meta: serverInfo,
    })
    const extensions = { 'io.modelcontextprotocol/tasks': {} }
    access.offered = {
      capabilities: { extensions, tasks: { list: {} }, tools: { listChanged: false } },
      instructions: 'files: read first.',
    }
    const { result } = await ask('server/discover')
    expect(result.capabilities).toMatchObject({ extensions, tools: { listChanged: true } })
    expect(result.capabilities).not.toHaveProperty('tasks')
    expect(result.instructions).toBe('Use the tools.\n\nfiles: read first.')
  })

  test('no session is opened, and nothing is kept between requests', async () => {
    const { ask, clock } = await openServer()
    const before = clock.pending
    const { headers } = await ask('tools/call', { name: 'echo' })
    expect(headers).not.toHaveProperty('mcp-session-id')
    expect(clock.pending).toBe(before)
  })

  test.each([
    [5_000, 5_000],
    [0, 0],
    [3_600_000, 60_000],
  ])('a list whose servers allow caching for %d ms may be cached for %d ms', async (given, ttlMs) => {
    const { ask, access } = await openServer()
    access.listTtls.prompt = given
    expect((await ask('prompts/list')).result).toMatchObject({ ...hint, ttlMs, _meta: serverInfo })
    expect((await ask('tools/list')).result).toMatchObject(hint)
  })

  test('lists come page by page in the envelope of the era', async () => {
    const { ask } = await openServer()
    const first = (await ask('tools/list')).result
    expect(first).toMatchObject({ resultType: 'complete', ...hint, _meta: serverInfo, nextCursor: 'second' })
    expect(first.tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'verbatim'])
    const second = (await ask('tools/list', { cursor: 'second' })).result
    expect(second.tools[0].name).toBe('pretty')
    expect(second).not.toHaveProperty('nextCursor')
    for (const [method, field] of [
      ['prompts/list', 'prompts'],
      ['resources/list', 'resources'],
      ['resources/templates/list', 'resourceTemplates'],
    ] as const) {
      const { result } = await ask(method)
      expect(result).toMatchObject({ resultType: 'complete', ...hint, _meta: serverInfo, [field]: expect.any(Array) })
    }
  })

  test('T2: a result gets its type and is otherwise the bytes it came in', async () => {
    const { ask } = await openServer()
    const { text } = await ask('tools/call', { name: 'verbatim' }, { id: 'a' })
    expect(text).toBe(`{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete",${verbatim.slice(1)}}`)
    const modern = (await ask('tools/call', { name: 'modern' })).text
    expect(modern).toContain('{"resultType":"complete", "content":[{"type":"text","text":"m"}],"ttlMs":5}')
  })

  test('reads may not be kept, unless their server says otherwise', async () => {
    const { ask } = await openServer()
    const plain = (await ask('resources/read', { uri: 'test://static' })).result
    expect(plain).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      contents: [{ uri: 'test://static', text: 'text' }],
    })
    expect((await ask('resources/read', { uri: 'test://cached' })).result).toEqual({
      resultType: 'complete',
      contents: [],
      ttlMs: 9,
      cacheScope: 'public',
    })
  })

  test('prompts and completions', async () => {
    const { ask } = await openServer()
    const prompt = (await ask('prompts/get', { name: 'greet', arguments: { a: 'b' } })).result
    expect(prompt).toEqual({
      resultType: 'complete',
      messages: [{ role: 'user', content: { type: 'text', text: '{"a":"b"}' } }],
    })
    const ref = { type: 'ref/prompt', name: 'greet' }
    const completed = (await ask('completion/complete', { ref, argument: { name: 'a', value: 'b' } })).result
    expect(completed).toMatchObject({ resultType: 'complete', completion: { total: 1 } })
  })

  test('T2: the members of a request are forwarded, except for those of this hop', async () => {
    const { ask, access } = await openServer()
    const rest = { inputResponses: { a: 1 }, requestState: 'of a server' }
    const meta = { traceparent: '00-1', 'example.com/x': { y: 1 } }
    await ask(
      'tools/call',
      { name: 'echo', arguments: { n: 1 }, ...rest },
      { logLevel: 'info', progressToken: 7, meta },
    )
    await ask('resources/read', { uri: 'test://7', ...rest })
    await ask('prompts/get', { name: 'greet' })
    const [called, readOnce, prompted] = access.calls.map(({ input }) => input)
    expect(called).toMatchObject({ rest, meta: { ...meta, progressToken: 7 } })
    expect(Object.keys(called?.meta ?? {}).filter((key) => key.startsWith(prefix))).toEqual([])
    expect(readOnce).toMatchObject({ uri: 'test://7', rest, meta: {} })
    expect(prompted).not.toHaveProperty('rest')
  })

  test('G3: a caller has the principal, client info and capabilities of its request', async () => {
    const { ask, access } = await openServer({ people: true })
    const as = (name: string, version: string, program?: object) =>
      ask(
        'tools/call',
        { name: 'echo' },
        {
          capabilities: { roots: { listChanged: version === '1' } },
          headers: { authorization: `Bearer ${name}-token` },
          meta: program && { [`${prefix}clientInfo`]: program },
        },
      )
    await as('anna', '1')
    await as('anna', '2')
    await as('bert', '3')
    await as('anna', '4', { name: 'other', version: '1' })
    const callers = access.calls.map(({ caller }) => caller)
    expect(callers[0]).toEqual({
      agent: 'default',
      agents: [],
      principal: 'anna',
      authenticated: true,
      admin: false,
      session: expect.stringMatching(/^modern-[\w-]{22}$/),
      capabilities: { roots: { listChanged: true } },
      address: '127.0.0.1',
      client: 'by hand',
    })
    expect(callers[1]).toMatchObject({ session: callers[0]?.session, capabilities: { roots: { listChanged: false } } })
    expect(new Set(callers.map(({ session }) => session)).size).toBe(3)
    const { peer } = access.calls[0] ?? {}
    expect(peer?.rounds).toBe(true)
  })
})

describe('E1: failures in the stateless era', () => {
  test('a tool that is refused is a result, with its type; what a server says is passed on as it is', async () => {
    const { ask } = await openServer()
    const refused = await ask('tools/call', { name: 'refuse', arguments: { code: 'RATE_LIMITED' } })
    expect(refused).toMatchObject({ status: 200, result: { resultType: 'complete', isError: true } })
    const prompt = await ask('prompts/get', { name: 'refused' })
    expect(prompt).toMatchObject({ status: 200, error: { code: -31004 } })
    const { text, status } = await ask('tools/call', { name: 'server_error' })
    expect([status, text]).toEqual([200, `{"jsonrpc":"2.0","id":1,"error":${serverError}}`])
    const broken = await ask('tools/call', { name: 'broken' })
    expect(broken.text).not.toContain('secret')
  })

  test('a resource that a server of the other era does not have has the number of this era and the name it was asked for by; all else stays', async () => {
    const { ask } = await openServer()
    const { text, status } = await ask('resources/read', { uri: 'test://error/gone' })
    const expected = serverErrors.gone?.replace('-32002', '-32602').replace('test://gone', 'test://error/gone')
    expect([status, text]).toEqual([200, `{"jsonrpc":"2.0","id":1,"error":${expected}}`])
  })

  test('only a missing capability changes the status', async () => {
    const { ask } = await openServer()
    expect(await ask('tools/call', { name: 'error_incapable' })).toMatchObject({
      status: 400,
      error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } },
    })
    expect(await ask('tools/call', { name: 'error_own' })).toMatchObject({ status: 200, error: { code: -32020 } })
  })

  test('an address to visit becomes a question, if the client can be asked that', async () => {
    const { ask } = await openServer()
    const capabilities = { elicitation: { url: {} } }
    const { status, result } = await ask('tools/call', { name: 'error_visit' }, { capabilities })
    expect([status, result]).toEqual([
      200,
      {
        resultType: 'input_required',
        inputRequests: {
          visit1: {
            method: 'elicitation/create',
            params: { mode: 'url', elicitationId: 'e1', url: 'https://a.example/', message: 'Go' },
          },
        },
      },
    ])
    expect(await ask('tools/call', { name: 'error_visit' }, { capabilities: { elicitation: {} } })).toMatchObject({
      status: 400,
      error: {
        code: -32021,
        message: expect.stringContaining('elicitation.url'),
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      },
    })
  })

  test('T2: an input_required result is passed on unchanged, and so are the responses to it', async () => {
    const { ask } = await openServer()
    const { text } = await ask('tools/call', { name: 'more_wanted' })
    expect(text).toBe(`{"jsonrpc":"2.0","id":1,"result":${moreWanted}}`)
    const told = { inputResponses: { user_name: { action: 'accept' } }, requestState: 'theirs' }
    const { result } = await ask('tools/call', { name: 'more_wanted', ...told })
    expect(JSON.parse(result.content[0].text)).toEqual(told)
  })
})

describe('B2: messages during a call', () => {
  test('progress comes on the stream of its request, under the token of its request', async () => {
    const { call } = await openServer()
    const { headers, body } = await call('progress', { steps: 2 }, { progressToken: 'mine', id: 9 })
    expect(headers['content-type']).toBe('text/event-stream')
    const heard = await Array.fromAsync(events(body))
    expect(heard.map(({ params }) => params)).toMatchObject([
      { progressToken: 'mine', progress: 1 },
      { progress: 2 },
      undefined,
    ])
    expect(heard[2]).toMatchObject({ id: 9, result: { resultType: 'complete' } })
  })

  test('without a token there is no progress, and the answer is plain', async () => {
    const { call } = await openServer()
    const { headers, body } = await call('progress')
    await body.dump()
    expect(headers['content-type']).toBe('application/json')
  })

  test('log messages come from the level on that the request names, and not at all without one', async () => {
    const { call } = await openServer()
    const silent = await call('log_all')
    expect(silent.headers['content-type']).toBe('application/json')
    await silent.body.dump()
    const { body } = await call('log_all', {}, { logLevel: 'error' })
    const heard = await Array.fromAsync(events(body))
    const levels = heard.map(({ params, result }) => params?.level ?? result.content[0].text)
    expect(levels).toEqual(['error', 'critical', 'alert', 'emergency', 'unheard-of', 'error'])
  })

  test('a client that accepts no stream gets a plain response, and nothing else', async () => {
    const { call } = await openServer()
    const { headers, body } = await call('progress', {}, { progressToken: 1, headers: { accept: 'application/json' } })
    await body.dump()
    expect(headers['content-type']).toBe('application/json')
  })

  test('notifications that this era does not have are not sent', async () => {
    const { call } = await openServer()
    const { headers, body } = await call('visited', {}, { logLevel: 'debug' })
    await body.dump()
    expect(headers['content-type']).toBe('application/json')
  })

  test('closing the stream cancels the call', async () => {
    const { call, access } = await openServer()
    const aborting = new AbortController()
    const waiting = call('wait', {}, { signal: aborting.signal }).catch(() => {})
    const running = await until(() => access.calls[0], { what: 'the call' })
    aborting.abort()
    await until(() => running.signal.aborted, { what: 'the cancellation' })
    await waiting
  })

  test('a page of an allowed origin may send the headers of this era', async () => {
    const { raw, origin } = await openServer()
    const { headers } = await raw({
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'mcp-method, Mcp-Param-Region, x-evil, mcp-param-a b',
      },
    })
    const allowed = String(headers['access-control-allow-headers']).split(', ')
    expect(allowed).toEqual(expect.arrayContaining(['Mcp-Method', 'Mcp-Name', 'Mcp-Param-Region']))
    expect(allowed.join()).not.toMatch(/evil|a b/)
  })
})
