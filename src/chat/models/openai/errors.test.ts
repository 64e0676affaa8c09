import { inspect } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createManualClock } from '../../../../tests/fixtures/clock.ts'
import { unusedPort } from '../../../../tests/fixtures/listening.ts'
import { startProxy } from '../../../../tests/fixtures/proxy.ts'
import { silentLog } from '../../../core/log.ts'
import { failure, hello, key, patient, serving, timeouts } from '../model.fixture.ts'
import { collectAnswer, type Model } from '../model.ts'
import { hangsUp, json, piece, type Reply, refuses, says, send, sends } from '../server.fixture.ts'
import { OpenAIModel } from './openai-model.ts'

const ask = (model: Model, stream = false) =>
  collectAnswer(model.complete({ messages: hello, signal: patient(), stream }))

describe('a server that refuses', () => {
  test.each<readonly [string, Reply, string, RegExp]>([
    [
      '401',
      refuses(401, `Incorrect API key provided: ${key}`),
      'SERVER_UNAVAILABLE',
      /rejected the API key.*models\.local\.apiKey/,
    ],
    ['403', refuses(403, 'no'), 'SERVER_UNAVAILABLE', /rejected the API key/],
    [
      '404',
      refuses(404, 'The model `qwen3` does not exist'),
      'SERVER_UNAVAILABLE',
      /models\.local\.baseUrl and model.*does not exist/,
    ],
    ['405', refuses(405, 'POST is not allowed'), 'SERVER_UNAVAILABLE', /models\.local\.baseUrl and model/],
    ['400', refuses(400, 'bad\nrequest\u001b[31m'), 'INVALID_ARGUMENTS', /It says: bad request$/],
    [
      '402',
      refuses(402, 'Insufficient Balance'),
      'SERVER_UNAVAILABLE',
      /account for models\.local.*Insufficient Balance/,
    ],
    ['408', refuses(408, 'too slow'), 'TIMEOUT', /HTTP 408.*Try again.*too slow/],
    [
      'a used-up quota',
      (_asked, response) =>
        json(response, { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } }, 429),
      'SERVER_UNAVAILABLE',
      /account for models\.local.*exceeded your current quota/,
    ],
    [
      'a wrong key in a response with status 200',
      (_asked, response) => json(response, { error: { message: 'Wrong key: sk-v***ey', code: 'invalid_api_key' } }),
      'SERVER_UNAVAILABLE',
      /rejected the API key[^*]*$/,
    ],
    ['413', refuses(413, 'too large'), 'INVALID_ARGUMENTS', /too large/],
    ['500', refuses(500, 'CUDA out of memory'), 'SERVER_UNAVAILABLE', /HTTP 500.*CUDA out of memory/],
    [
      '302',
      (_asked, response) => response.writeHead(302, { location: 'http://evil.example/' }).end(),
      'SERVER_UNAVAILABLE',
      /redirect/,
    ],
    [
      'a plain sentence',
      (_asked, response) => response.writeHead(500).end('Internal Server Error'),
      'SERVER_UNAVAILABLE',
      /It says: Internal Server Error/,
    ],
    [
      'the words of others',
      (_asked, response) => json(response, { detail: [{ loc: ['body'], msg: 'field required' }] }, 422),
      'INVALID_ARGUMENTS',
      /field required/,
    ],
    [
      'a flood of words',
      (_asked, response) => response.writeHead(400).end('x'.repeat(1_000_000)),
      'INVALID_ARGUMENTS',
      /^.{1,700}$/,
    ],
    [
      'an error that is a string',
      (_asked, response) => json(response, { error: 'model not found' }, 404),
      'SERVER_UNAVAILABLE',
      /model not found/,
    ],
  ])('S6: %s', async (_what, reply, code, sentence) => {
    const { model, server } = await serving([reply])
    const error = await failure(ask(model))
    expect(error).toMatchObject({ name: 'ToolwayError', code, message: expect.stringMatching(sentence) })
    expect(server.asked).toHaveLength(1)
  })

  test('S6: nothing listens', async () => {
    const config = {
      baseUrl: `http://127.0.0.1:${await unusedPort()}/v1`,
      model: 'm',
      apiKey: key,
      constraint: 'auto' as const,
      timeouts,
    }
    await using model = new OpenAIModel({ name: 'local', config, clock: createManualClock(), log: silentLog })
    expect(await failure(ask(model))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(/ECONNREFUSED.*models\.local\.baseUrl/),
    })
  })
})

describe('a server that breaks', () => {
  test.each<readonly [string, Reply, RegExp]>([
    ['hangs up before it answers', hangsUp(), /cannot be reached/],
    ['hangs up in mid-stream', hangsUp('Once '), /closed the connection/],
    [
      'answers with a page',
      sends('text/html', '<!doctype html><p>Welcome to nginx'),
      /text\/html instead of a completion.*baseUrl/,
    ],
    ['answers with prose', sends('text/plain', 'Hello there'), /text\/plain instead/],
    ['answers with nothing', sends('application/json'), /answered with nothing/],
    ['answers with half an object', sends('application/json', '{"choices": [{"mess'), /not JSON/],
    ['streams something that is no JSON', sends('text/event-stream', 'data: oops\n\n'), /not JSON/],
    [
      'streams an error',
      (_asked, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        send(response, piece('Once '))
        send(response, { error: { message: `worker died, key ${key}` } })
        response.end()
      },
      /reported an error.*worker died, key \*\*\*/,
    ],
    [
      'answers with an error and a good status',
      (_asked, response) => json(response, { error: { message: 'nope' } }),
      /error 500.*nope/,
    ],
    [
      'sends one event without end',
      sends('text/event-stream', 'data: ', ...Array.from({ length: 80 }, () => 'x'.repeat(65_536))),
      /too long/,
    ],
    [
      'sends one object without end',
      sends('application/json', '{"a": "', ...Array.from({ length: 80 }, () => 'x'.repeat(65_536))),
      /more than \d+ KiB/,
    ],
  ])('S6: one that %s', async (_what, reply, sentence) => {
    const { model } = await serving([reply])
    expect(await failure(ask(model, true))).toMatchObject({
      name: 'ToolwayError',
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringMatching(sentence),
    })
  })

  test.each([
    ['neither a finish reason nor [DONE]', piece('Once ')],
    ['an empty finish reason', piece('Once ', '')],
  ])('S6: a stream that ends with %s is cut off', async (_what, last) => {
    const { model } = await serving([sends('text/event-stream', `data: ${JSON.stringify(last)}\n\n`)])
    expect(await ask(model, true)).toMatchObject({ text: 'Once ', reason: 'interrupted' })
  })

  test('S6: a stream with [DONE] and without a finish reason is complete', async () => {
    const { model } = await serving([
      sends('text/event-stream', `data: ${JSON.stringify(piece('Once '))}\n\n`, 'data: [DONE]\n\n'),
    ])
    expect(await ask(model, true)).toMatchObject({ text: 'Once ', reason: 'unknown' })
  })

  test.each(['', 'data: {"choices":[],"usa'])('S6: a connection lost after the finish reason and %j', async (rest) => {
    const { model } = await serving([
      async (_asked, response) => {
        const text = `data: ${JSON.stringify(piece('Once', 'stop'))}\n\n${rest}`
        await new Promise((sent) => response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text, sent))
        response.socket?.destroy()
      },
    ])
    expect(await ask(model, true)).toMatchObject({ text: 'Once', reason: 'stop' })
  })

  test('S6: a long answer works', async () => {
    const long = 'x'.repeat(1_000_000)
    const { model } = await serving([sends('text/event-stream', `data: ${JSON.stringify(piece(long, 'stop'))}\n\n`)])
    expect((await ask(model, true)).text).toBe(long)
  })
})

describe('G1: a server behind the proxy of a company', () => {
  afterEach(() => void vi.unstubAllEnvs())

  const behind = async (replies: readonly Reply[]) => {
    const { server } = await serving(replies)
    const baseUrl = server.baseUrl.replace('127.0.0.1', 'models.invalid')
    return serving([], { baseUrl })
  }

  test('requests go through it, also for streams', async () => {
    await using proxy = await startProxy()
    vi.stubEnv('HTTP_PROXY', proxy.url)
    const { model } = await behind([says('Hi'), says('Ho')])
    expect((await ask(model, true)).text).toBe('Hi')
    expect((await ask(model, false)).text).toBe('Ho')
    expect(proxy.asked).toHaveLength(2)
    expect(proxy.asked[0]).toMatch(/^POST http:\/\/models\.invalid:\d+\/v1\/chat\/completions$/)
  })

  test('a proxy failure is reported as such', async () => {
    vi.stubEnv('HTTP_PROXY', `http://127.0.0.1:${await unusedPort()}`)
    const { model } = await behind([])
    const { code, message } = await failure(ask(model))
    expect(code).toBe('SERVER_UNAVAILABLE')
    expect(message).toMatch(/\blocal cannot be reached: the proxy .* Check HTTP_PROXY, or add/)
  })
})

describe('secrets', () => {
  test('B6: the key is never in an error or the log', async () => {
    const replies = [401, 400, 404, 500, 422].map((status) =>
      refuses(status, `your key ${key} is odd`, { 'x-echo': key }),
    )
    const { model, log } = await serving([...replies, hangsUp()])
    for (const _ of [...replies, 0]) {
      const error = await failure(ask(model))
      expect(inspect(error, { depth: 10 })).not.toContain(key)
    }
    expect(inspect(log.lines, { depth: 10 })).not.toContain(key)
  })

  test('B6: a password in the URL becomes a header and is never shown', async () => {
    const { server, model } = await serving([refuses(400, 'p@ss is wrong')], {})
    const { port } = new URL(server.baseUrl)
    await using other = new OpenAIModel({
      name: 'other',
      config: {
        baseUrl: `http://ada:p%40ss@127.0.0.1:${port}/v1`,
        model: 'm',
        apiKey: undefined,
        constraint: 'auto',
        timeouts,
      },
      clock: createManualClock(),
      log: silentLog,
    })
    const error = await failure(ask(other))
    expect(server.asked[0]?.headers.authorization).toBe(`Basic ${Buffer.from('ada:p@ss').toString('base64')}`)
    expect(inspect(error)).not.toMatch(/p@ss|p%40ss/)
    expect(model.name).toBe('local')
  })

  test('B6: a key in the query is never shown', async () => {
    const { model } = await serving(
      [refuses(400, 'no route for ?api-key=q-secret-7&v=1')],
      {},
      '?api-key=q-secret-7&v=1',
    )
    expect((await failure(ask(model))).message).toContain('?api-key=***&v=1')
  })

  test.each([
    ['ab%2Bcd%2f99', 'ab%2Bcd%2f99'],
    ['ab%2Bcd%2f99', 'ab%2Bcd%2F99'],
    ['ab%2Bcd%2f99', 'ab+cd/99'],
    ['ab+cd/99', 'ab+cd/99'],
    ['ab+cd/99', 'ab cd/99'],
    ['ab+cd/99', 'ab%20cd%2F99'],
  ])('B6: the key %s in the query is not shown as %s', async (written, quoted) => {
    const message = `Invalid URL (POST /v1/chat/completions?v=1&&api-key=${quoted})`
    const { model } = await serving([refuses(404, message)], {}, `?v=1&&api-key=${written}`)
    expect((await failure(ask(model))).message).toContain('api-key=***)')
  })

  test('B6: a key that cannot be a header is refused without being shown', async () => {
    const make = () =>
      new OpenAIModel({
        name: 'local',
        config: { baseUrl: 'http://127.0.0.1:1/v1', model: 'm', apiKey: 'a\nb-secret', constraint: 'auto', timeouts },
        clock: createManualClock(),
        log: silentLog,
      })
    expect(make).toThrow(/models\.local\.apiKey/)
    expect(make).not.toThrow(/secret/)
  })
})
