import { describe, expect, test } from 'vitest'
import { until } from '../../../../tests/fixtures/until.ts'
import { hello, key, patient, serving } from '../model.fixture.ts'
import { collectAnswer, type Delta } from '../model.ts'
import { answers, calls, events, json, piece, type Reply, says, send, sends } from '../server.fixture.ts'

const weather = {
  name: 'weather',
  description: 'Tells it.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('a well-behaved server', () => {
  test('S6: a complete answer, and the exact request', async () => {
    const { server, model } = await serving([says('Hello, world.')])
    const answer = await collectAnswer(
      model.complete({ messages: hello, signal: patient(), maxTokens: 50, temperature: 0 }),
    )
    expect(answer).toMatchObject({
      text: 'Hello, world.',
      thinking: '',
      calls: [],
      reason: 'stop',
      usage: { promptTokens: 7, completionTokens: 3 },
    })
    expect(server.asked).toHaveLength(1)
    expect(server.asked[0]?.path).toBe('/v1/chat/completions')
    expect(server.asked[0]?.headers).toMatchObject({
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
    })
    expect(server.asked[0]?.body).toEqual({
      model: 'qwen3',
      messages: hello,
      stream: false,
      max_tokens: 50,
      temperature: 0,
    })
  })

  test('S6: a streamed answer', async () => {
    const { server, model } = await serving([
      answers({ reasoning_content: 'Hm, let me see.', content: 'Hello, world.' }),
    ])
    const told: Delta[] = []
    for await (const delta of model.complete({ messages: hello, signal: patient(), stream: true })) told.push(delta)
    const texts = (kind: string) =>
      told.filter((delta) => delta.kind === kind).map((delta) => ('text' in delta ? delta.text : ''))
    expect(texts('thinking')).toEqual(['Hm, l', 'et me', ' see.'])
    expect(texts('text')).toEqual(['Hello', ', wor', 'ld.'])
    expect(told.at(-1)).toMatchObject({ kind: 'end', reason: 'stop', usage: { promptTokens: 7, completionTokens: 3 } })
    expect(server.asked[0]?.body).toEqual({
      model: 'qwen3',
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  test.each([false, true])('J5: calls of tools, in pieces: %s', async (stream) => {
    const { server, model } = await serving([
      calls({ name: 'weather', arguments: { city: 'Paris' } }, { name: 'weather', arguments: { city: 'Rome' } }),
    ])
    const other = { name: 'add', parameters: { type: 'object' } }
    const answer = await collectAnswer(
      model.complete({ messages: hello, tools: [weather, other], signal: patient(), stream }),
    )
    expect(answer.reason).toBe('calls')
    expect(answer.calls).toEqual([
      { id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } },
      { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } },
    ])
    const { body } = server.asked[0] as { body: Record<string, unknown> }
    expect(body.tool_choice).toBe('auto')
    // Sorted, so that prompt caches hit.
    expect(body.tools).toEqual([
      { type: 'function', function: other },
      { type: 'function', function: weather },
    ])
  })

  test.each([false, true])('S6: a connection is used again, in pieces: %s', async (stream) => {
    const { server, model } = await serving([says('one'), says('two'), says('three')])
    for (const text of ['one', 'two', 'three']) {
      expect((await collectAnswer(model.complete({ messages: hello, signal: patient(), stream }))).text).toBe(text)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(server.connections).toBe(1)
  })

  test('S6: also if the body ends shortly after [DONE]', async () => {
    const late: Reply = (_asked, response) => {
      events(response)
      send(response, piece('x', 'stop'))
      response.write('data: [DONE]\n\n', () => setImmediate(() => response.end()))
    }
    const { server, model } = await serving([late])
    const ask = async () => {
      const before = server.connections
      await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
      return server.connections === before
    }
    await until(ask, { what: 'an answer over a connection that had one before' })
  })

  test('S6: does not wait for the end of the body after [DONE]', async () => {
    const never: Reply = (_asked, response) => {
      events(response)
      send(response, piece('x', 'stop'))
      response.write('data: [DONE]\n\n')
    }
    const { model, clock } = await serving([never])
    expect((await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))).text).toBe('x')
    expect(clock.pending).toBe(0)
  })

  test.each([
    ['none', undefined],
    [undefined, undefined],
    ['abc', 'Bearer abc'],
  ])('S6: the key %j is sent as %j', async (apiKey, sent) => {
    const { server, model } = await serving([says('x')], { apiKey })
    await collectAnswer(model.complete({ messages: hello, signal: patient() }))
    expect(server.asked[0]?.headers.authorization).toBe(sent)
  })

  test('S6: a path and a query in the address are kept', async () => {
    const { server, model } = await serving([says('x')], {}, '/openai/?api-version=1')
    await collectAnswer(model.complete({ messages: hello, signal: patient() }))
    expect(server.asked[0]?.path).toBe('/v1/openai/chat/completions?api-version=1')
  })
})

describe('deviations of servers', () => {
  const whole = (message: object, finish_reason: unknown = 'stop') => ({ choices: [{ message, finish_reason }] })

  test.each<readonly [string, object, object]>([
    [
      'content in parts',
      whole({
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }),
      { text: 'ab' },
    ],
    ['reasoning by another name', whole({ reasoning: 'why', content: 'x' }), { text: 'x', thinking: 'why' }],
    ['a refusal', whole({ content: null, refusal: 'No.' }), { text: 'No.', reason: 'filtered' }],
    ['an empty answer', whole({ content: '' }), { text: '', reason: 'stop' }],
    ['no content at all', whole({}), { text: '', calls: [] }],
    ['no choices', { choices: [] }, { text: '', reason: 'unknown' }],
    ['a cut off answer', whole({ content: 'x' }, 'length'), { reason: 'length' }],
    ['a reason of its own', whole({ content: 'x' }, 'weird'), { reason: 'unknown' }],
    ['no reason', whole({ content: 'x' }, null), { text: 'x', reason: 'unknown' }],
    [
      'arguments as an object',
      whole({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: { x: 1 } } }] }),
      { calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }], reason: 'calls' },
    ],
    [
      'the older form of calls',
      whole({ function_call: { name: 'f', arguments: '{}' } }),
      { calls: [expect.objectContaining({ function: { name: 'f', arguments: '{}' } })] },
    ],
    ['usage that is none', { ...whole({ content: 'x' }), usage: 'much' }, { text: 'x' }],
    [
      'usage that nobody can have',
      { ...whole({ content: 'x' }), usage: { prompt_tokens: 'much', completion_tokens: 3 } },
      { usage: { promptTokens: 0, completionTokens: 3 } },
    ],
    [
      'types that are wrong',
      { choices: [{ message: { content: 5, tool_calls: ['x', null, { function: 7 }] }, finish_reason: 3 }] },
      { text: '' },
    ],
  ])('S6: %s', async (_what, body, expected) => {
    const { model } = await serving([(_asked, response) => json(response, body)])
    expect(await collectAnswer(model.complete({ messages: hello, signal: patient() }))).toMatchObject(expected)
  })

  test('S3: calls without ids, or with the same one, get their own', async () => {
    const call = (id: string | undefined) => ({
      ...(id !== undefined && { id }),
      function: { name: 'f', arguments: '{}' },
    })
    const { model } = await serving([
      (_asked, response) => json(response, whole({ tool_calls: [call('x'), call('x'), call(''), call(undefined)] })),
    ])
    const { calls } = await collectAnswer(model.complete({ messages: hello, signal: patient() }))
    expect(new Set(calls.map(({ id }) => id)).size).toBe(4)
    for (const { id } of calls) expect(id).toMatch(/./)
  })

  test('J5: calls with the same index are distinguished by their ids', async () => {
    const delta = (call: object) =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] }, finish_reason: null }] })}\n\n`
    const { model } = await serving([
      sends(
        'text/event-stream',
        delta({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }),
        delta({ index: 0, function: { arguments: ':1}' } }),
        delta({ index: 0, id: 'b', function: { name: 'g', arguments: '{}' } }),
        'data: [DONE]\n\n',
      ),
    ])
    const { calls } = await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(calls.map(({ id, function: called }) => [id, called.name, called.arguments])).toEqual([
      ['a', 'f', '{"x":1}'],
      ['b', 'g', '{}'],
    ])
  })

  const streamed = (finish: string | null, ...calls: readonly object[]) =>
    sends(
      'text/event-stream',
      ...calls.map((call) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] })}\n\n`),
      `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: finish }] })}\n\n`,
      'data: [DONE]\n\n',
    )

  test('J5: a name repeated in every chunk is used once', async () => {
    const { model } = await serving([
      streamed(
        'tool_calls',
        { index: 0, id: 'a', function: { name: 'look', arguments: '{"x"' } },
        { index: 0, id: 'a', function: { name: 'look', arguments: ':1}' } },
      ),
    ])
    const { calls } = await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(calls.map(({ function: called }) => called)).toEqual([{ name: 'look', arguments: '{"x":1}' }])
  })

  test.each<readonly [string, readonly object[], readonly (readonly [string, string])[]]>([
    [
      'each in a chunk of its own',
      [
        { function: { name: 'look', arguments: '{"x":1}' } },
        { function: { name: 'look', arguments: '{"x":2}' } },
        { function: { name: 'remove', arguments: '{}' } },
      ],
      [
        ['look', '{"x":1}'],
        ['look', '{"x":2}'],
        ['remove', '{}'],
      ],
    ],
    [
      'in several chunks',
      [
        { function: { name: 'look', arguments: '' } },
        { function: { arguments: '{"x"' } },
        { function: { arguments: ':1}' } },
        { function: { name: 'remove', arguments: '{}' } },
      ],
      [
        ['look', '{"x":1}'],
        ['remove', '{}'],
      ],
    ],
    [
      'with their name in every chunk',
      [{ function: { name: 'look', arguments: '{"x"' } }, { function: { name: 'look', arguments: ':1}' } }],
      [['look', '{"x":1}']],
    ],
    [
      'with their name also in chunks without arguments',
      [
        { function: { name: 'look', arguments: '' } },
        { function: { name: 'look', arguments: '{"x":1}' } },
        { function: { name: 'look', arguments: '' } },
      ],
      [['look', '{"x":1}']],
    ],
    [
      'with the same index and no id',
      [
        { index: 0, id: '', function: { name: 'look', arguments: '{"x":1}' } },
        { index: 0, id: '', function: { name: 'look', arguments: '{"x":2}' } },
        { index: 0, id: null, function: { name: 'remove', arguments: '{}' } },
      ],
      [
        ['look', '{"x":1}'],
        ['look', '{"x":2}'],
        ['remove', '{}'],
      ],
    ],
    [
      'with an index and their name in two chunks',
      [
        { index: 0, function: { name: 'lo' } },
        { index: 0, function: { name: 'ok', arguments: '' } },
        { index: 0, function: { arguments: '{"x":1}' } },
      ],
      [['look', '{"x":1}']],
    ],
  ])('J5: calls without id or index, %s', async (_what, chunks, expected) => {
    const { model } = await serving([streamed('tool_calls', ...chunks)])
    const { calls } = await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(calls.map(({ function: called }) => [called.name, called.arguments])).toEqual(expected)
  })

  test.each([
    ['length', 1],
    [null, 1],
    ['tool_calls', 2],
  ])('J5: where an answer ends by %j, a call whose arguments had not begun counts or not', async (finish, count) => {
    const { model } = await serving([
      streamed(
        finish,
        { index: 0, id: 'a', function: { name: 'look', arguments: '{}' } },
        { index: 1, id: 'b', function: { name: 'remove_all', arguments: '' } },
      ),
    ])
    const { calls } = await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(calls).toHaveLength(count)
  })

  test.each([
    ['length', 'length'],
    ['model_length', 'length'],
    ['MAX_TOKENS', 'length'],
    ['error', 'interrupted'],
    ['abort', 'interrupted'],
    ['insufficient_system_resource', 'interrupted'],
    ['content_filter', 'filtered'],
    ['end_turn', 'unknown'],
  ])('S6: an answer with the finish reason %s ends by %s', async (finish, reason) => {
    const { model } = await serving([says('Once upon', finish)])
    for (const stream of [false, true])
      expect(await collectAnswer(model.complete({ messages: hello, signal: patient(), stream }))).toMatchObject({
        text: 'Once upon',
        reason,
      })
  })

  test.each(['null', 'None', ''])('S6: the finish reason "%s" does not end an answer', async (none) => {
    const pieces = [piece('Once ', none), piece('upon', none), piece(' a time.', 'stop')]
    const served = await serving([
      async (_asked, response) => {
        events(response)
        for (const one of pieces) {
          send(response, one)
          await new Promise((resolve) => setTimeout(resolve, 5))
          served.clock.advance(2_000)
        }
        response.end('data: [DONE]\n\n')
      },
    ])
    const answer = await collectAnswer(served.model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(answer).toMatchObject({ text: 'Once upon a time.', reason: 'stop' })
  })

  test.each<readonly [unknown, string, string]>([
    ['Okay, 2 + 2.\n</think>\n\nThe answer is 4.', 'Okay, 2 + 2.', 'The answer is 4.'],
    ['Okay.</think>\n\n4.', 'Okay.', '4.'],
    ['The tag `</think>` ends the reasoning.', '', 'The tag `</think>` ends the reasoning.'],
    ['```\nx\n</think>\n```', '', '```\nx\n</think>\n```'],
    [
      [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Okay.' }] },
        { type: 'text', text: '4.' },
      ],
      'Okay.',
      '4.',
    ],
  ])('S6: reasoning in the content is separated: %j', async (content, thinking, text) => {
    const { model } = await serving([(_asked, response) => json(response, whole({ content }))])
    expect(await collectAnswer(model.complete({ messages: hello, signal: patient() }))).toMatchObject({
      thinking,
      text,
    })
  })

  test('S6: only the first choice is used', async () => {
    const other = (content: string) => ({ choices: [{ index: 1, delta: { content }, finish_reason: null }] })
    const chunks = [piece('A'), other('Z'), piece('B', 'stop')].map((one) => `data: ${JSON.stringify(one)}\n\n`)
    const { model } = await serving([sends('text/event-stream', ...chunks)])
    const answer = await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))
    expect(answer.text).toBe('AB')
  })

  const stream = 'data: {"choices":[{"delta":{"content":"é"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  const object = JSON.stringify(whole({ content: 'é' }))
  test.each<readonly [string, string, readonly (string | Uint8Array)[]]>([
    ['a stream called JSON', 'application/json', [stream]],
    ['an object called a stream of something', 'text/plain', [object]],
    ['an object with spaces before it', 'application/json', [' ', '\n', object]],
    ['a stream with comments and other fields', 'text/event-stream', [`: hi\n\nevent: x\nid: 1\n${stream}`]],
    ['a stream with other line ends', 'text/event-stream', [stream.replaceAll('\n', '\r\n')]],
    ['a stream without its end', 'text/event-stream', [stream.replace('data: [DONE]\n\n', '')]],
    ['a stream without the last empty line', 'text/event-stream', [stream.replace('\n\ndata: [DONE]\n\n', '')]],
    ['a stream without spaces', 'text/event-stream', [stream.replaceAll('data: ', 'data:')]],
    [
      'a character split between pieces',
      'text/event-stream',
      [...Buffer.from(stream)].map((byte) => Uint8Array.of(byte)),
    ],
  ])('S6: %s', async (_what, type, writes) => {
    const { model } = await serving([sends(type, ...writes)])
    expect((await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))).text).toBe('é')
  })

  test('S6: invalid UTF-8 is replaced', async () => {
    const bytes = Buffer.from('data: {"choices":[{"delta":{"content":"a?b"},"finish_reason":"stop"}]}\n\n')
    bytes[bytes.indexOf('?')] = 0xff
    const { model } = await serving([sends('text/event-stream', bytes)])
    expect((await collectAnswer(model.complete({ messages: hello, signal: patient(), stream: true }))).text).toBe(
      'a\ufffdb',
    )
  })
})
