import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { events, initializeWith, openTestServer } from './http/server.fixture.ts'
import { readInbound } from './inbound-message.ts'
import { metaOf, openStatelessServer } from './mcp-stateless/stateless.fixture.ts'

let open = new AsyncDisposableStack()
afterEach(async () => {
  await open.disposeAsync()
  open = new AsyncDisposableStack()
})

/** Params in which some parser finds something else than ours does: the method, the params, the member to blame. */
const ambiguous: readonly (readonly [method: string, params: object, member: string])[] = [
  ['tools/call', { name: 'echo', Name: 'wait' }, 'Name'],
  ['tools/call', { name: 'echo', arguments: {}, Arguments: { path: '/etc' } }, 'Arguments'],
  ['tools/call', { name: 'echo', 'arguments ': {} }, 'arguments '],
  ['tools/call', { name: 'echo', argumentſ: {} }, 'argument'],
  ['tools/call', { name: 'echo', tas\u212a: {} }, 'tas'],
  ['tools/call', { name: 'echo', Task: { ttl: 1 } }, 'Task'],
  ['tools/call', { name: 'echo', _META: {} }, '_META'],
  ['resources/read', { uri: 'test://7', URI: 'test://8' }, 'URI'],
  ['prompts/get', { name: 'greet', ｎame: 'other' }, 'ame'],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet', Name: 'x' }, argument: {} }, 'ref.Name'],
  ['completion/complete', { ref: {}, argument: { name: 'a', value: 'b', Value: 'c' } }, 'argument.Value'],
  ['tools/list', { Cursor: 'x' }, 'Cursor'],
  ['tasks/get', { taskId: 'a', TaskID: 'b' }, 'TaskID'],
]

describe('V1: a legacy session', () => {
  test.each(ambiguous)('refuses %s with %j', async (method, params, member) => {
    const { session, access } = open.use(await openTestServer())
    const { error } = await (await session()).ask(method, params)
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(member) })
    expect(access.calls).toEqual([])
    expect(access.turned).toMatchObject([{ malformed: true, detail: error?.message }])
  })

  test('refuses a misspelt key of _meta that means something, and passes on the others', async () => {
    const { session, access } = open.use(await openTestServer())
    const { ask } = await session()
    for (const key of ['ProgressToken', 'dev.toolway/Agent', 'DEV.toolway/x', 'Traceparent']) {
      const { error } = await ask('tools/call', { name: 'echo', _meta: { [key]: 'x' } })
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(key) })
    }
    await ask('tools/call', { name: 'echo', _meta: { 'example.com/X': 1 } })
    expect(access.calls.map(({ input }) => input.meta)).toEqual([{ 'example.com/X': 1 }])
  })

  test('leaves unknown members out, and says so in the debug log', async () => {
    const { session, access, log } = open.use(await openTestServer())
    const { ask } = await session()
    await ask('tools/call', { name: 'echo', later: [1], inputResponses: {} })
    expect(access.calls.map(({ input }) => input.rest)).toEqual([undefined])
    expect(log.lines.filter(({ level }) => level === 'debug')).toContainEqual(
      expect.objectContaining({ facts: expect.objectContaining({ members: ['later', 'inputResponses'] }) }),
    )
  })

  test('refuses misspelt capabilities of a client', async () => {
    const { raw } = open.use(await openTestServer())
    const { status, json } = await raw({ body: initializeWith({ Sampling: {} }) })
    expect([status, json?.error?.code]).toEqual([400, -32602])
  })

  test('refuses each ambiguous message of a batch, and answers the others', async () => {
    const { session, raw, access } = open.use(await openTestServer())
    const { headers } = await session({}, {}, '2025-03-26')
    const call = (id: number, params: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`
    const batch = [
      call(1, '{"name":"echo","Name":"wait"}'),
      call(2, '{"name":"echo"}'),
      call(3, '{"name":"echo","na\\u006de":"wait"}'),
      `${call(4, '{"name":"echo"}').slice(0, -1)},"Params":{"name":"wait"}}`,
    ]
    const { text } = await raw({ body: `[${batch.join()}]`, headers })
    const answers = (JSON.parse(text) as { id: number; error?: { code: number } }[]).map(({ id, error }) => [
      id,
      error?.code,
    ])
    expect(answers).toEqual([
      [1, -32602],
      [2, undefined],
      [3, -32602],
      [4, -32600],
    ])
    expect(access.calls).toHaveLength(1)
  })

  test('ignores a misspelt cancellation', async () => {
    const { session, access } = open.use(await openTestServer())
    const { send } = await session()
    const answer = send({ id: 7, method: 'tools/call', params: { name: 'wait' } })
    await expect.poll(() => access.calls.length).toBe(1)
    await send({ method: 'notifications/cancelled', params: { requestId: 7, requestID: 8 } })
    access.release()
    expect(await (await answer).body.json()).toMatchObject({ id: 7, result: { content: [{ text: 'waited' }] } })
  })
})

describe("V1: a client's answer", () => {
  const answered = async (result: string) => {
    const { session, raw } = open.use(await openTestServer())
    const { send, headers } = await session({ sampling: {}, elicitation: {} })
    const { body } = await send({ id: 1, method: 'tools/call', params: { name: 'ask', arguments: {} } })
    const stream = events(body)
    const question = (await stream.next()).value
    const { status, json } = await raw({ body: `{"jsonrpc":"2.0","id":"${question?.id}",${result}}`, headers })
    return { status, code: json?.error?.code, answer: (await stream.next()).value?.result }
  }

  test.each([
    '"result":{"model":"m","Model":"n"}',
    '"result":{"model":"m","role":"user","ROLE":"assistant"}',
    '"result":{"model":"m","model":"n"}',
    '"result":{"model":"m","content":{"type":"text","text":"a","Text":"b"}}',
    '"error":{"code":1,"message":"no","Message":"yes"}',
  ])('that can be read in two ways is refused: %s', async (result) => {
    const { status, code, answer } = await answered(result)
    expect([status, code, answer.isError]).toEqual([400, -32602, true])
  })

  test('reaches the server without members that the protocol does not define', async () => {
    const { status, answer } = await answered('"result":{"model":"m","later":1}')
    expect([status, answer.content[0].text]).toEqual([202, '{"model":"m"}'])
  })
})

describe('V1: a request of the stateless era', () => {
  const legacyOnly = new Set(['tasks/get'])

  test.each(ambiguous.filter(([method]) => !legacyOnly.has(method)))(
    'refuses %s with %j',
    async (method, params, member) => {
      const { ask, access } = open.use(await openStatelessServer())
      const { status, error } = await ask(method, params as Record<string, unknown>)
      expect([status, error?.code]).toEqual([400, -32602])
      expect(error?.message).toContain(member)
      expect(access.calls).toEqual([])
    },
  )

  test.each([
    { RequestState: 'x' },
    { InputResponses: {} },
    { inputResponses: { a: { action: 'decline', Action: 'accept' } } },
    { inputResponses: { a: { Action: 'accept' } } },
    { inputResponses: { a: { Roots: [] } } },
    { inputResponses: { a: { role: 'user', content: { type: 'text', text: 'a', TEXT: 'b' }, model: 'm' } } },
  ])('refuses %j', async (rest) => {
    const { ask, access } = open.use(await openStatelessServer())
    const { error } = await ask('tools/call', { name: 'echo', ...rest })
    expect(error?.code).toBe(-32602)
    expect(access.calls).toEqual([])
  })

  test.each(['IO.modelcontextprotocol/protocolVersion', 'io.modelcontextprotocol/clientinfo', 'progresstoken'])(
    'refuses %s in _meta',
    async (key) => {
      const { ask, access } = open.use(await openStatelessServer())
      const { status, error } = await ask('tools/call', { name: 'echo' }, { meta: { [key]: '2026-07-28' } })
      expect([status, error?.code]).toEqual([400, -32602])
      expect(access.calls).toEqual([])
    },
  )

  test('refuses misspelt capabilities, and members of an extension that was not declared are left out', async () => {
    const { ask, access } = open.use(await openStatelessServer())
    expect((await ask('tools/call', { name: 'echo' }, { capabilities: { Roots: {} } })).error?.code).toBe(-32602)
    await ask('tools/call', { name: 'echo', task: { ttl: 1 } })
    expect(access.calls.map(({ input }) => input.rest)).toEqual([undefined])
  })
})

describe('V1: an envelope', () => {
  const request = '"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}'

  test.each(['ID', 'Id', 'Method', 'METHOD', 'Params', 'params ', 'JSONRPC', 'jſonrpc', 'Result', 'Error', '\\u0049d'])(
    'with the member %s is not a message',
    (name) => {
      expect(readInbound(Buffer.from(`{${request},"${name}":{}}`))).toMatchObject({ kind: 'invalid', code: -32600 })
      expect(readInbound(Buffer.from(`{"${name}":{},${request}}`))).toMatchObject({ kind: 'invalid', code: -32600 })
    },
  )

  test.each(['"id":2', '"meth\\u006fd":"ping"', '"params":{}', '"jsonrpc":"2.0"'])(
    'with a second %s is not one',
    (member) => {
      expect(readInbound(Buffer.from(`{${request},${member}}`))).toMatchObject({ kind: 'invalid', code: -32600 })
    },
  )

  test('with a member that resembles none is one', () => {
    expect(readInbound(Buffer.from(`{${request},"trace":1}`))).toMatchObject({ kind: 'request', id: 1 })
  })
})

test('V1: the stdio front end refuses the same, in both eras', async () => {
  const { serveStdio } = await import('./stdio.ts')
  const { access, clock, log } = open.use(await openTestServer())
  const [input, output] = [new PassThrough(), new PassThrough()]
  const lines: string[] = []
  output.on('data', (chunk) => lines.push(...String(chunk).trim().split('\n')))
  const caller = {
    ...{ agent: 'default', agents: '*' as const, principal: 'local', authenticated: true, admin: true },
    ...{ session: 'stdio', capabilities: {} },
  }
  const served = serveStdio({ input, output, access, info: { name: 'toolway', version: '0' }, caller, clock, log })
  const say = (id: number, params: object) =>
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`)
  say(1, { name: 'echo', Name: 'wait', _meta: metaOf() })
  input.write(`${JSON.stringify(initializeWith())}\n`)
  say(2, { name: 'echo', Arguments: {} })
  await expect.poll(() => lines.length).toBe(3)
  input.end()
  await served
  const errors = lines.map((line) => JSON.parse(line)).filter(({ error }) => error)
  expect(errors.map(({ id, error }) => [id, error.code])).toEqual([
    [1, -32602],
    [2, -32602],
  ])
  expect(access.calls).toEqual([])
  expect(access.turned.map(({ detail }) => detail)).toEqual(errors.map(({ error }) => error.message))
})
