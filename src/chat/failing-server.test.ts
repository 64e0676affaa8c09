import { describe, expect, test } from 'vitest'
import { until } from '../../tests/fixtures/until.ts'
import { ask, byStage, type Chatting, chatting } from './chat.fixture.ts'
import {
  calls,
  events,
  hangsUp,
  ignores,
  piece,
  type Reply,
  refuses,
  refusesIf,
  says,
  send,
  stalls,
} from './models/server.fixture.ts'

const good = {
  select: says('{"reasoning": "r", "selected_tools": ["weather__forecast"]}'),
  call: calls({ name: 'weather__forecast', arguments: { city: 'Rome' } }),
  interpret: says('{"content": "Sunny all day."}'),
  answer: says('Directly.'),
}

const busy = refuses(429, 'slow down', { 'retry-after': '3600' })
const broken = refuses(500, 'CUDA out of memory')
const sunny = { text: 'Sunny all day.', reason: 'stop', notes: [] }
const directly = { text: 'Directly.', reason: 'stop', notes: [expect.stringContaining('it answers without tools')] }
const afterFailure = { ...directly, notes: [expect.stringContaining('without tools, because a request to it failed')] }
const raw = {
  text: '(The model could not summarize the results. These are the raw results:)\n\nweather__forecast:\nRome: sunny, 21 degrees',
  reason: 'stop',
  notes: [expect.stringContaining('raw results')],
}
const afterPart = {
  text: 'Sun\n\n(The model stopped here. These are the raw results:)\n\nweather__forecast:\nRome: sunny, 21 degrees',
  reason: 'stop',
  notes: [expect.stringContaining('stopped')],
}

const outcome = async ({ chat }: Chatting, stream = false) => {
  const { text, end } = await ask(chat, 'How is Rome?', { stream })
  return { text, reason: end.reason, notes: end.notes }
}

describe('S5: a model server that fails in one stage', () => {
  test.each<readonly [string, Readonly<Record<string, Reply | readonly Reply[]>>, object, number]>([
    ['a selection that hangs up', { select: hangsUp() }, afterFailure, 2],
    ['a selection that is too busy', { select: busy }, afterFailure, 2],
    ['a selection that fails', { select: broken }, afterFailure, 2],
    ['a selection that is empty', { select: says('') }, directly, 3],
    ['a selection of no known tool', { select: says('{"reasoning": "r", "selected_tools": ["rm"]}') }, directly, 3],
    [
      'a selection of some known tools',
      { select: says('{"reasoning": "r", "selected_tools": ["rm", "forecast"]}') },
      sunny,
      4,
    ],
    ['a selection without reasons', { select: says('{"selected_tools": ["weather.forecast"]}') }, sunny, 4],
    ['calls that hang up once', { call: [hangsUp(), good.call] }, sunny, 4],
    ['calls that hang up', { call: hangsUp() }, afterFailure, 4],
    ['calls that are too busy', { call: busy }, afterFailure, 4],
    ['no calls and no words', { call: says('') }, directly, 4],
    [
      'words instead of calls, twice',
      { call: [says('Let me look.'), says('No need to look: sunny.')] },
      { ...sunny, text: 'No need to look: sunny.', notes: [expect.stringContaining('called no tool')] },
      3,
    ],
    ['words instead of calls, once', { call: [says('Let me look.'), good.call] }, sunny, 4],
    [
      'words instead of calls, then nothing',
      { call: [says('Sunny.'), says('')] },
      { ...sunny, text: 'Sunny.', notes: [expect.stringContaining('called no tool')] },
      3,
    ],
    [
      'calls of tools that were not selected',
      { call: calls({ name: 'arithmetic__add', arguments: { a: 1, b: 2 } }) },
      directly,
      4,
    ],
    ['calls of tools that there are not', { call: calls({ name: 'rm', arguments: {} }) }, directly, 4],
    [
      'arguments of the wrong type',
      { call: calls({ name: 'weather__forecast', arguments: { city: 7 } }) },
      directly,
      4,
    ],
    [
      'a call that was written as text',
      { call: says('<tool_call>\n{"name": "weather__forecast", "arguments": {"city": "Rome"}}\n</tool_call>') },
      sunny,
      3,
    ],
    [
      'a call that was written as text and cut off',
      { call: says('{"name": "weather__forecast", "argum') },
      directly,
      4,
    ],
    ['an interpretation that hangs up once', { interpret: [hangsUp(), good.interpret] }, sunny, 4],
    ['an interpretation that hangs up', { interpret: hangsUp() }, raw, 4],
    ['an interpretation that is too busy', { interpret: busy }, raw, 3],
    ['an interpretation that is prose', { interpret: says('Sunny!') }, { ...sunny, text: 'Sunny!' }, 3],
    [
      'an interpretation that is prose with brackets',
      { interpret: says('Rome is sunny [1], with {21} degrees.') },
      { ...sunny, text: 'Rome is sunny [1], with {21} degrees.' },
      3,
    ],
    ['an interpretation that is empty', { interpret: says('{"content": " "}') }, raw, 4],
    [
      'an interpretation that is cut off by its length',
      { interpret: says('{"content": "Sun', 'length') },
      { text: 'Sun', reason: 'length', notes: [] },
      3,
    ],
    [
      'an interpretation that is refused',
      { interpret: says('I cannot say.', 'content_filter') },
      { text: 'I cannot say.', reason: 'filtered', notes: [] },
      3,
    ],
  ])('%s', async (_what, script, expected, requests) => {
    const chatted = await chatting([byStage({ ...good, ...script })])
    expect(await outcome(chatted)).toEqual(expected)
    expect(chatted.server.asked).toHaveLength(requests)
  })

  test('if one of two calls stays invalid, the other is made and the problem is a result', async () => {
    const call = calls(
      { name: 'weather__forecast', arguments: { city: 'Rome' }, id: 'right' },
      { name: 'weather__forecast', arguments: { town: 'Rome' }, id: 'wrong' },
    )
    const { chat, server } = await chatting([byStage({ ...good, call })])
    expect((await ask(chat, 'x')).text).toBe('Sunny all day.')
    expect(server.asked[2]?.body.messages.slice(-2)).toMatchObject([
      { role: 'tool', tool_call_id: 'right', content: expect.stringContaining('Not run yet') },
      { role: 'tool', tool_call_id: 'wrong', content: expect.stringContaining('city') },
    ])
    expect(server.asked[3]?.body.messages.slice(-2)).toMatchObject([
      { role: 'tool', content: 'Rome: sunny, 21 degrees' },
      { role: 'tool', content: expect.stringMatching(/^Error: Invalid arguments/) },
    ])
  })

  test('the error of a failed tool is its result', async () => {
    const call = calls({ name: 'weather__forecast', arguments: { city: 'Atlantis' } })
    const { chat, server } = await chatting([byStage({ ...good, call })])
    const { events: told } = await ask(chat, 'x')
    expect(told.find(({ kind }) => kind === 'result')).toMatchObject({ isError: true })
    expect(server.asked[2]?.body.messages.at(-1)?.content).toMatch(/^Error: forecast failed unexpectedly/)
  })
})

describe('S5: a model server that fails in mid-stream', () => {
  test.each<readonly [string, Reply, object]>([
    ['hangs up', hangsUp('{"content": "Sun'), afterPart],
    ['ends without a word', part('{"content": "Sun'), afterPart],
    ['reports an error', part('{"content": "Sun', { error: { message: 'worker died' } }), afterPart],
    ['hangs up before there is any text', hangsUp('{"con'), raw],
    [
      'is cut off by its length',
      part('{"content": "Sun', piece('', 'length')),
      { text: 'Sun', reason: 'length', notes: [] },
    ],
    ['forgets the last brace', part('{"content": "Sunny all day."', piece('', 'stop')), sunny],
    ['turns to prose', says('Sunny!'), { ...sunny, text: 'Sunny!' }],
    ['forgets to escape quotes', says('{"content": "Sun "shines" now"}'), { ...sunny, text: 'Sun "shines" now' }],
    ['keeps its backslashes', says('{"content": "C:\\dir"}'), { ...sunny, text: 'C:\\dir' }],
    ['thinks first', says('<think>Well.</think>{"content": "Sunny all day."}'), sunny],
  ])('one that %s', async (_what, interpret, expected) => {
    expect(await outcome(await chatting([byStage({ ...good, interpret })]), true)).toEqual(expected)
  })

  test.each([true, false])('S6: reasoning before a summary is separated (stream %s)', async (stream) => {
    const interpret = says('<think>Well.</think>{"content": "Sunny all day."}')
    const { events: told, text } = await ask((await chatting([byStage({ ...good, interpret })])).chat, 'x', { stream })
    const thoughts = told.flatMap((event) => (event.kind === 'thinking' ? [event.text] : []))
    expect([thoughts.join(''), text]).toEqual(['Well.', 'Sunny all day.'])
  })

  test.each<readonly [string, Reply]>([
    ['in the middle', part('{"content": "Sun', { error: { message: 'CUDA out of memory' } })],
    ['at the beginning', refuses(500, 'CUDA out of memory')],
  ])('the log says why it failed %s', async (_when, interpret) => {
    const { chat, log } = await chatting([byStage({ ...good, interpret })])
    await ask(chat, 'x', { stream: true })
    expect(JSON.stringify(log.lines)).toContain('CUDA out of memory')
  })

  test('a direct answer that breaks off is used as far as it came', async () => {
    const script = byStage({
      ...good,
      select: says('{"reasoning": "r", "selected_tools": []}'),
      answer: hangsUp('Once '),
    })
    expect(await outcome(await chatting([script]), true)).toEqual({
      text: 'Once ',
      reason: 'length',
      notes: ['The model stopped in the middle of its answer.'],
    })
  })

  test('without anything to answer with, the failure is reported', async () => {
    const { chat, server } = await chatting([hangsUp()])
    await expect(ask(chat, 'x', { stream: true })).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    // The selection, and the answer twice.
    expect(server.asked).toHaveLength(3)
  })
})

describe('S4: a model server that refuses the form', () => {
  test.each([false, true])('400 on json_schema costs a rung, once (stream %s)', async (stream) => {
    const refusing = refusesIf(
      ({ response_format: format }) => format?.type === 'json_schema',
      'response_format json_schema is not supported',
      byStage(good),
    )
    const chatted = await chatting([refusing])
    expect(await outcome(chatted, stream)).toEqual(sunny)
    expect(chatted.server.asked).toHaveLength(5)
    expect(await outcome(chatted, stream)).toEqual(sunny)
    expect(chatted.server.asked).toHaveLength(8)
  })

  test('a server that accepts only prompts still completes all stages', async () => {
    const bare = refusesIf(
      (body) => 'response_format' in body || 'grammar' in body || 'tools' in body,
      'unsupported parameter',
      ({ body }, response) => {
        const system = String(body.messages[0]?.content)
        const script = system.includes('selected_tools')
          ? good.select
          : system.includes('tool_calls')
            ? written
            : good.interpret
        return script({ body } as never, response)
      },
    )
    expect(await outcome(await chatting([bare]))).toEqual(sunny)
  })
})

const written = says('{"tool_calls": [{"name": "weather__forecast", "arguments": {"city": "Rome"}}]}')

describe('S5: a model server that is slow', () => {
  test('if the selection times out, the model answers directly', async () => {
    const chatted = await chatting([byStage({ ...good, select: ignores })])
    const answer = outcome(chatted)
    await chatted.server.request(1)
    chatted.clock.advance(180_000)
    expect(await answer).toEqual(afterFailure)
    expect(chatted.clock.pending).toBe(0)
  })

  test('429 is retried without effect on the answer', async () => {
    const polite = refuses(429, 'slow down', { 'retry-after': '3' })
    const { chat, clock, log } = await chatting([byStage({ ...good, interpret: [polite, good.interpret] })])
    const answer = ask(chat, 'x')
    await until(() => log.lines.some(({ message }) => message.includes('busy')), { what: 'the wait' })
    clock.advance(3_000)
    expect((await answer).text).toBe('Sunny all day.')
  })

  test('a stalled stream is aborted and the results are returned', async () => {
    const chatted = await chatting([byStage({ ...good, interpret: stalls('{"content": "Sun') })])
    const answer = outcome(chatted, true)
    await chatted.server.request(3)
    await until(() => chatted.clock.pending === 3, { what: 'the watch over the next piece' })
    chatted.clock.advance(30_000)
    expect(await answer).toEqual(afterPart)
    await (await chatted.server.request(3)).abandoned
    expect(chatted.clock.pending).toBe(0)
  })
})

/** A stream of one piece of text, and then perhaps something else. */
function part(text: string, ...more: readonly object[]): Reply {
  return (_asked, response) => {
    events(response)
    for (const object of [piece(text), ...more]) send(response, object)
    response.end()
  }
}
