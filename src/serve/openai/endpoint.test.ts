import { afterEach, describe, expect, test } from 'vitest'
import { callerKey } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { createTestChat, endOf } from './chat.fixture.ts'
import { hi, openChatServer } from './openai.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (settings?: Parameters<typeof openChatServer>[0]) => stack.use(await openChatServer(settings))

describe('B6: accepts the same credentials as the MCP endpoint', () => {
  test('a missing or wrong one is a 401 and is recorded', async () => {
    const { ask, access, chat } = await open()
    for (const authorization of [undefined, 'Bearer wrong', 'Basic x']) {
      const { status, headers, error } = await ask({}, { authorization })
      expect(status).toBe(401)
      expect(headers['www-authenticate']).toContain('Bearer')
      expect(error).toMatchObject({ type: 'authentication_error', code: 'AUTH_REQUIRED', param: null })
    }
    expect(access.turned.map(({ code }) => code)).toEqual(['AUTH_REQUIRED', 'AUTH_REQUIRED', 'AUTH_REQUIRED'])
    expect(chat.asked).toEqual([])
  })

  test('Host and Origin are checked exactly', async () => {
    const { ask, access } = await open()
    for (const headers of [{ host: 'rebound.example.com' }, { origin: 'https://evil.example.com' }]) {
      const { status, error } = await ask({}, headers)
      expect([status, error.type, error.code]).toEqual([403, 'permission_error', 'DENIED_BY_POLICY'])
    }
    expect(access.turned).toHaveLength(2)
  })

  test('pages of an allowed origin may read answers, and send what the clients of OpenAI send', async () => {
    const origin = 'https://page.example.com'
    const { ask, raw } = await open({ config: { allowedOrigins: [origin] } })
    const { headers } = await ask({}, { origin })
    expect(headers['access-control-allow-origin']).toBe(origin)
    expect(headers['access-control-expose-headers']).toContain('Toolway-Chat')
    const asked = 'authorization,x-stainless-lang,x-stainless-retry-count'
    const preflight = await raw({
      method: 'OPTIONS',
      path: '/v1/chat/completions',
      headers: {
        ...{ origin, authorization: undefined, 'access-control-request-method': 'POST' },
        'access-control-request-headers': asked,
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-headers']).toContain('x-stainless-retry-count')
  })

  test('G7: the agent is named by the body, else the header, else the query, and must be allowed', async () => {
    const { ask, chat, access } = await open({ people: true })
    const anna = { authorization: 'Bearer anna-token' }
    access.agentOf = (_, asked) => asked ?? 'usual'
    await ask({}, anna)
    await ask({}, anna, '/v1/chat/completions?agent=query')
    await ask({}, { ...anna, 'toolway-agent': 'header' }, '/v1/chat/completions?agent=query')
    await ask({ toolway: { agent: 'body' } }, { ...anna, 'toolway-agent': 'header' })
    expect(chat.asked.map(({ caller: { agent, principal } }) => `${principal} ${agent}`)).toEqual([
      'anna usual',
      'anna query',
      'anna header',
      'anna body',
    ])
    expect(new Set(chat.asked.map(({ caller }) => callerKey(caller))).size).toBe(4)
    expect(chat.asked[0]?.caller).toMatchObject({ capabilities: {}, address: '127.0.0.1', authenticated: true })
  })

  test('an agent that the credential may not be is refused', async () => {
    const { ask, chat, access } = await open({ people: true })
    access.agentOf = () => {
      throw new ToolwayError('INVALID_AGENT_ID', 'You may not be that one.')
    }
    const { status, error } = await ask({}, { authorization: 'Bearer anna-token', 'toolway-agent': 'boss' })
    expect([status, error.type, error.code]).toEqual([403, 'permission_error', 'INVALID_AGENT_ID'])
    expect(chat.asked).toEqual([])
    expect(access.turned).toMatchObject([{ code: 'INVALID_AGENT_ID', asked: 'boss', principal: 'anna' }])
  })

  test('approval: a client cannot be asked over HTTP', async () => {
    const { ask, chat } = await open()
    await ask()
    const [{ peer, signal, caller } = expect.fail('not asked')] = chat.asked
    expect(caller.capabilities).toEqual({})
    await expect(peer.ask('elicitation/create', {} as never, signal)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
    })
  })
})

describe('requests', () => {
  test('bodies are bounded, and JSON', async () => {
    const { ask, raw } = await open({ config: { maxBody: 1000 } })
    const large = await ask({ messages: [{ role: 'user', content: 'x'.repeat(2000) }] })
    expect([large.status, large.error.type]).toEqual([413, 'invalid_request_error'])
    const form = { path: '/v1/chat/completions', headers: { 'content-type': 'text/plain' }, body: '{}' }
    expect((await raw(form)).status).toBe(415)
    expect((await ask({ n: 2 })).error).toMatchObject({ param: 'n', code: 'unsupported_parameter' })
  })

  test('unknown paths and wrong methods are errors in the format of OpenAI', async () => {
    const { get, raw } = await open()
    for (const path of ['/v1/', '/v1/embeddings', '/v1/modelsx']) {
      const { status, json } = await get(path)
      expect([path, status, json.error.type]).toEqual([path, 404, 'invalid_request_error'])
      expect(json.error.message).toContain('/v1/chat/completions')
    }
    const wrong = await raw({ method: 'GET', path: '/v1/chat/completions' })
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST'])
    expect((await raw({ path: '/v1/models', body: {} })).headers.allow).toBe('GET, HEAD')
  })

  test('while the gateway shuts down nothing new begins, and what is under way ends', async () => {
    const scripted = createTestChat()
    const { promise: asked, resolve: begun } = Promise.withResolvers<void>()
    const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
    scripted.script = async function* () {
      begun()
      await goOn
      yield endOf()
    }
    const { ask, server } = await open({ scripted })
    const under = ask()
    await asked
    const closed = server[Symbol.asyncDispose]()
    release()
    expect((await under).status).toBe(200)
    await closed
    await expect(ask()).rejects.toThrow()
  })
})

describe('models', () => {
  test('are listed and found by name, the usual one first', async () => {
    const { get } = await open({ scripted: createTestChat(undefined, ['local', 'qwen/qwen3']) })
    const { json } = await get('/v1/models')
    expect(json).toMatchObject({ object: 'list', data: [{ id: 'local', object: 'model' }, { id: 'qwen/qwen3' }] })
    for (const path of ['qwen%2Fqwen3', 'qwen/qwen3']) {
      expect((await get(`/v1/models/${path}`)).json).toMatchObject({ id: 'qwen/qwen3', owned_by: 'toolway' })
    }
  })

  test('an unknown one is a 404 that names those there are', async () => {
    const { ask, get } = await open()
    const { status, error } = await ask({ model: 'locl' })
    expect(status).toBe(404)
    expect(error).toMatchObject({ type: 'invalid_request_error', param: 'model', code: 'model_not_found' })
    expect(error.message).toMatch(/did you mean "local"\? .*local, large/)
    expect((await get('/v1/models/gpt-4')).status).toBe(404)
  })

  test('the one asked for answers, and the usual one where none is', async () => {
    const { ask, chat } = await open()
    await ask({ model: 'large' })
    await ask()
    expect(chat.asked.map(({ model }) => model)).toEqual(['large', 'local'])
  })

  test.each([undefined, createTestChat(undefined, [])])(
    'without a configured one the error says how to configure one',
    async (chat) => {
      const { ask, get } = await open({ chat: () => chat })
      const { status, error } = await ask({ model: 'gpt-4', messages: [hi] })
      expect([status, error.code]).toEqual([404, 'model_not_found'])
      expect(error.message).toMatch(/models.*chat\.model/)
      expect((await get('/v1/models')).json).toEqual({ object: 'list', data: [] })
    },
  )
})

test('S6: every refusal has a code, also of a body that cannot be read, a wrong method and an unknown path', async () => {
  const { raw } = await open({ config: { maxBody: 1_000 } })
  const path = '/v1/chat/completions'
  const text = { 'content-type': 'text/plain' }
  for (const [request, status] of [
    [{ path, body: { messages: [hi, { ...hi, content: 'x'.repeat(2_000) }] } }, 413],
    [{ path, body: { messages: [hi] }, headers: text }, 415],
    [{ path, method: 'GET' }, 405],
    [{ path: '/v1/nothing', method: 'GET' }, 404],
  ] as const) {
    const answer = await raw(request)
    expect([answer.status, answer.json]).toMatchObject([status, { error: { code: 'invalid_request', param: null } }])
  }
})
