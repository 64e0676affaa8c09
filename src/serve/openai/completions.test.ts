import { afterEach, describe, expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { commentEveryMs } from '../http/sse-stream.ts'
import { aborted, call, createTestChat, endOf, result, usual } from './chat.fixture.ts'
import { eventsOf, openChatServer } from './openai.fixture.ts'

let stack = new AsyncDisposableStack()
afterEach(async () => {
  await stack.disposeAsync()
  stack = new AsyncDisposableStack()
})
const open = async (
  script?: Parameters<typeof createTestChat>[0],
  settings: Parameters<typeof openChatServer>[0] = {},
) => stack.use(await openChatServer({ scripted: createTestChat(script), ...settings }))

const handed = [
  { id: 'h1', type: 'function', function: { name: 'mine', arguments: '{"a":1}' } },
  { id: 'h2', type: 'function', function: { name: 'mine', arguments: 'no json' } },
] as const

const failing = (error: ToolwayError, ...before: readonly (typeof usual)[number][]) =>
  async function* () {
    yield* before
    throw error
  }

describe('S6: an answer as a whole', () => {
  test('has the form of OpenAI, and what happened on the way in a member of its own', async () => {
    const { ask, chat } = await open()
    const { status, headers, json } = await ask({ toolway: { mode: 'agent' }, temperature: 1 })
    expect(status).toBe(200)
    expect(json).toEqual({
      id: expect.stringMatching(/^chatcmpl-[\w-]{17}$/),
      object: 'chat.completion',
      created: 1_800_000_000,
      model: 'local',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello wörld', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
      toolway: {
        reason: 'stop',
        notes: [],
        calls: [
          {
            call: 'c1',
            name: 'files__read',
            server: 'files',
            arguments: { path: '/a' },
            isError: false,
            durationMs: 12,
          },
        ],
      },
    })
    const [asked] = chat.asked
    expect(asked).toMatchObject({ id: json.id, mode: 'agent', temperature: 1, stream: false })
    expect([headers['toolway-chat'], headers['x-request-id']]).toEqual([json.id, json.id])
  })

  test.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['filtered', 'content_filter'],
    ['steps', 'length'],
  ] as const)('that ended because of %s says %s', async (reason, finish) => {
    const { ask } = await open(() => [endOf({ reason, notes: ['A fall-back.'] })])
    const { json } = await ask()
    expect(json.choices[0]).toMatchObject({ finish_reason: finish, message: { content: '' } })
    expect(json.toolway).toEqual({ reason, notes: ['A fall-back.'], calls: [] })
  })

  test('calls of the client are handed to it, with thoughts beside them', async () => {
    const { ask } = await open(() => [{ kind: 'thinking', text: 'Hm.' }, endOf({ reason: 'calls', handed })])
    const { json } = await ask()
    const message = { role: 'assistant', content: null, refusal: null, reasoning_content: 'Hm.', tool_calls: handed }
    expect(json.choices).toEqual([{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }])
  })

  test.each([
    [new ToolwayError('RATE_LIMITED', 'Slow down.', { retryAfterMs: 1_500 }), 429, 'rate_limit_error', '2'],
    [new ToolwayError('SERVER_UNAVAILABLE', 'The model cannot be reached.'), 502, 'server_error', undefined],
    [new ToolwayError('TIMEOUT', 'It took too long.'), 504, 'server_error', undefined],
    [new ToolwayError('CANCELLED', 'Toolway stops.'), 503, 'server_error', undefined],
    [new ToolwayError('DENIED_BY_POLICY', 'No.'), 403, 'permission_error', undefined],
  ])('E1: a failure (%s) is sent as a status and an error object', async (error, status, type, retryAfter) => {
    for (const stream of [false, true]) {
      const { ask } = await open(failing(error, { kind: 'stage', stage: 'discover', round: 1 }))
      const answer = await ask({ stream })
      expect(answer.status).toBe(status)
      expect(answer.headers['content-type']).toBe('application/json')
      expect(answer.headers['retry-after']).toBe(retryAfter)
      expect(answer.headers['x-should-retry']).toBeUndefined()
      expect(answer.json).toEqual({ error: { message: error.message, type, param: null, code: error.code } })
      expect(answer.headers['toolway-chat']).toMatch(/^chatcmpl-/)
    }
  })

  test('an unexpected error is sent without its cause, and an answer without an end is an error', async () => {
    const { ask, chat, log } = await open(failing(new TypeError('secret detail') as never))
    const { status, text } = await ask()
    expect(status).toBe(500)
    expect(text).not.toContain('secret')
    chat.script = () => [{ kind: 'text', text: 'half' }]
    expect((await ask()).error).toMatchObject({ type: 'server_error', code: 'INTERNAL' })
    expect(log.lines).toHaveLength(2)
  })

  test('F12: after a tool has run, the response asks clients not to retry', async () => {
    const { ask } = await open(failing(new ToolwayError('TIMEOUT', 'Late.'), call('c1'), result('c1')))
    expect((await ask()).headers['x-should-retry']).toBe('false')
  })
})

describe('S6: an answer piece by piece', () => {
  test('content as deltas, stages and tools beside them, usage where it is asked for', async () => {
    const { post } = await open()
    const { headers, body } = await post({ stream: true, stream_options: { include_usage: true } })
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
    const events = eventsOf(await body.text())
    expect(events.at(-1)).toBe('[DONE]')
    const chunks = events.slice(0, -1)
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({ id: headers['toolway-chat'], object: 'chat.completion.chunk', model: 'local' })
    }
    const seen = chunks.map(({ choices: [choice], toolway }) => [choice?.delta, choice?.finish_reason, toolway?.kind])
    expect(seen).toEqual([
      [{ role: 'assistant', content: '' }, null, undefined],
      [{}, null, 'stage'],
      [{}, null, 'stage'],
      [{}, null, 'call'],
      [{}, null, 'result'],
      [{ content: 'Hello ' }, null, undefined],
      [{ content: 'wörld' }, null, undefined],
      [{}, 'stop', 'end'],
      [undefined, undefined, undefined],
    ])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 16 } })
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
    expect(chunks[3].toolway).toEqual(usual[2])
  })

  test('S6: names no type of event, because older versions of the OpenAI SDKs skip events that have one', async () => {
    const { post } = await open()
    const { body } = await post({ stream: true })
    expect(await body.text()).not.toMatch(/^event:/m)
  })

  test('no usage unless asked for; calls for the client as one delta', async () => {
    const { post, chat } = await open(() => [{ kind: 'thinking', text: 'Hm.' }, endOf({ reason: 'calls', handed })])
    const events = eventsOf(await (await post({ stream: true })).body.text())
    expect(chat.asked[0]?.stream).toBe(true)
    expect(events.some((event) => 'usage' in Object(event))).toBe(false)
    expect(events.slice(1, -1).map(({ choices: [{ delta, finish_reason }] }) => [delta, finish_reason])).toEqual([
      [{ reasoning_content: 'Hm.' }, null],
      [{ tool_calls: handed.map((one, index) => ({ index, ...one })) }, null],
      [{}, 'tool_calls'],
    ])
  })

  test('a failure in the middle is an error event, and nothing follows', async () => {
    const error = new ToolwayError('RATE_LIMITED', 'Slow down.', { retryAfterMs: 10 })
    const { post } = await open(failing(error, { kind: 'text', text: 'Hel' }))
    const { statusCode, body } = await post({ stream: true })
    const events = eventsOf(await body.text())
    expect(statusCode).toBe(200)
    expect(events.at(-1)).toEqual({
      error: { message: 'Slow down.', type: 'rate_limit_error', param: null, code: 'RATE_LIMITED' },
    })
    expect(events).toHaveLength(3)
  })

  test('stages are sent after a moment, and the stream is kept alive while a tool runs', async () => {
    const { promise: asked, resolve: begun } = Promise.withResolvers<void>()
    const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
    const { post, clock } = await open(async function* () {
      yield { kind: 'stage', stage: 'select', round: 1 } as const
      begun()
      await goOn
      yield endOf()
    })
    const pending = clock.pending
    const answer = post({ stream: true })
    await asked
    await clock.pass(1_000)
    const { body } = await answer
    const reader = body[Symbol.asyncIterator]()
    let text = String((await reader.next()).value)
    while (!text.includes('keep-alive')) {
      await clock.pass(commentEveryMs)
      text += String((await reader.next()).value)
    }
    expect(text).toContain('"stage":"select"')
    release()
    for await (const chunk of { [Symbol.asyncIterator]: () => reader }) text += String(chunk)
    expect(text).toContain('[DONE]')
    await expect.poll(() => clock.pending).toBe(pending)
  })
})

describe('F10: a client that disconnects stops it', () => {
  test.each([false, true])('streaming: %s', async (stream) => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: over, resolve: end } = Promise.withResolvers<unknown>()
    const { fetchRaw, chat } = await open(async function* ({ signal }) {
      yield { kind: 'text', text: 'Hel' } as const
      begin()
      await aborted(signal).catch(end)
    })
    const leaving = new AbortController()
    const answer = fetchRaw({
      path: '/v1/chat/completions',
      body: { messages: [{ role: 'user', content: 'Hi' }], stream },
      signal: leaving.signal,
    })
    answer.catch(() => {})
    await begun
    leaving.abort()
    expect(await over).toMatchObject({ code: 'CANCELLED' })
    await expect.poll(() => chat.open).toBe(0)
  })

  test('B7: a reader that does not read holds the answer up instead of filling memory', async () => {
    let told = 0
    const { post, chat } = await open(async function* () {
      for (; told < 20_000; told++) yield { kind: 'text', text: 'x'.repeat(1_000) } as const
    })
    const { body } = await post({ stream: true })
    // As much as sockets take by themselves, and no more.
    const counts: number[] = []
    await expect.poll(() => counts.push(told) > 1 && told > 0 && counts.at(-2) === told, { interval: 100 }).toBe(true)
    expect(told).toBeLessThan(19_000)
    body.on('error', () => {}).destroy()
    await expect.poll(() => chat.open).toBe(0)
  })
})

describe('F16: a trace context', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  test.each([true, false])('comes from the headers where calls are traced: %s', async (traced) => {
    const { ask, chat } = await open(undefined, { traced: () => traced })
    await ask({}, { traceparent })
    expect(chat.asked[0]?.trace).toEqual(traced ? { traceparent } : undefined)
  })
})
