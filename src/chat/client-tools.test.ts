import { describe, expect, test } from 'vitest'
import type { ChatMessage, FunctionCall } from '../core/chat.ts'
import { ask, byStage, chatting, type Heard } from './chat.fixture.ts'
import { calls, says } from './models/server.fixture.ts'

const paint = {
  name: 'paint',
  description: 'Paints the wall.',
  parameters: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] },
}
const tools = [paint]
const question: ChatMessage = { role: 'user', content: 'Paint it as the weather is in Rome.' }
const mixed = calls(
  { name: 'weather__forecast', arguments: { city: 'Rome' }, id: 'ours' },
  { name: 'paint', arguments: { colour: 'blue' }, id: 'theirs' },
)
const agent = { config: { mode: 'agent' } }

/** What a client sends that has run the calls that it was handed. */
const comeBack = ({ text, end }: Heard, result = 'painted'): readonly ChatMessage[] => [
  question,
  { role: 'assistant', content: text === '' ? null : text, tool_calls: end.handed },
  ...end.handed.map(({ id }): ChatMessage => ({ role: 'tool', tool_call_id: id, content: result })),
]

const ours: FunctionCall = {
  id: 'ours',
  type: 'function',
  function: { name: 'weather__forecast', arguments: '{"city":"Rome"}' },
}
const theirs: FunctionCall = {
  id: 'theirs',
  type: 'function',
  function: { name: 'paint', arguments: '{"colour":"blue"}' },
}

describe("tools of the client's own", () => {
  test.each(['agent', 'staged'])('S6: are offered beside the catalog and handed back (%s)', async (mode) => {
    const script = byStage({
      select: says('{"reasoning": "r", "selected_tools": ["paint", "weather__forecast"]}'),
      call: calls({ name: 'paint', arguments: { colour: 'blue' }, id: 'x' }),
    })
    const { chat, server, gateway } = await chatting([script], { config: { mode } })
    const { end, events } = await ask(chat, [question], { tools })
    expect(end).toMatchObject({ reason: 'calls', handed: [{ type: 'function', function: theirs.function }] })
    expect(end.handed[0]?.id).toMatch(/^call_[\da-f]{32}$/)
    expect(events.some(({ kind }) => kind === 'call')).toBe(false)
    expect(gateway.calls).toHaveLength(0)
    const offered = server.asked.at(-1)?.body.tools?.map(({ function: { name } }) => name)
    expect(offered).toContain('paint')
  })

  test.each(['agent', 'staged'])(
    'S6: a tool that the request names is offered alone and called once (%s)',
    async (mode) => {
      const blue = { name: 'paint', arguments: { colour: 'blue' } }
      const { chat, server } = await chatting([calls({ name: 'paint', arguments: {} }), calls(blue, blue)], {
        config: { mode },
      })
      const choice = { tools: [{ name: 'other' }, paint], toolChoice: { tool: 'paint' } }
      const first = await ask(chat, [question], choice)
      expect(first.end).toMatchObject({ reason: 'calls', handed: [{ function: theirs.function }] })
      expect(first.end.handed).toHaveLength(1)
      const offered = { tool_choice: 'required', tools: [{ function: { name: 'paint' } }] }
      // The first call had invalid arguments, so the model was asked again.
      expect(server.asked.map(({ body }) => body)).toMatchObject([offered, offered])
      const again = await ask(chat, comeBack(first, 'Error: not blue enough'), choice)
      expect(again.end).toMatchObject({ reason: 'calls', handed: [{ function: theirs.function }] })
    },
  )

  test.each(['agent', 'staged'] as const)(
    'S6: with parallel_tool_calls false, the client gets one call at a time (%s)',
    async (mode) => {
      const paintings = ['blue', 'red'].map((colour) => ({ name: 'paint', arguments: { colour } }))
      const script = byStage({
        select: says('{"reasoning": "r", "selected_tools": ["paint", "weather__forecast"]}'),
        call: calls({ name: 'forecast', arguments: { city: 'Rome' } }, ...paintings),
      })
      const { chat, server, gateway } = await chatting([script], { config: { mode } })
      const { end } = await ask(chat, [question], { tools, parallelToolCalls: false })
      expect(end).toMatchObject({ reason: 'calls', handed: [{ function: theirs.function }] })
      expect(end.handed).toHaveLength(1)
      expect(gateway.calls).toHaveLength(1)
      expect(server.asked.at(-1)?.body.parallel_tool_calls).toBe(false)
      expect((await ask(chat, [question], { tools })).end.handed).toHaveLength(2)
      expect(server.asked.at(-1)?.body).not.toHaveProperty('parallel_tool_calls')
    },
  )

  test('J5: tool_choice required applies until a client tool is called', async () => {
    const forecast = calls({ name: 'forecast', arguments: { city: 'Rome' }, id: 'a' })
    const painting = calls({ name: 'paint', arguments: { colour: 'blue' }, id: 'b' })
    const { chat, server } = await chatting([forecast, painting], agent)
    const { end } = await ask(chat, [question], { tools, toolChoice: 'required' })
    expect(end.handed).toMatchObject([{ function: theirs.function }])
    expect(server.asked.map(({ body }) => body.tool_choice)).toEqual(['required', 'required'])
  })

  test('S3: tool_choice required also applies after results from client tools', async () => {
    const script = byStage({
      select: says('{"reasoning": "r", "selected_tools": ["paint"]}'),
      call: calls({ name: 'paint', arguments: { colour: 'blue' } }),
    })
    const { chat } = await chatting([script])
    const required = { tools, toolChoice: 'required' } as const
    const { end, stages } = await ask(chat, comeBack(await ask(chat, [question], required)), required)
    expect(end.handed).toMatchObject([{ function: theirs.function }])
    expect(stages).toContain('call 1')
  })

  test("J5: our calls run, the client's are handed over, and all results are there when it returns", async () => {
    const { chat, server, gateway } = await chatting([mixed, says('Done.')], agent)
    const first = await ask(chat, [question], { tools })
    expect(first.events.filter(({ kind }) => kind === 'result')).toHaveLength(1)
    expect(first.end.handed).toHaveLength(1)
    const second = await ask(chat, comeBack(first), { tools })
    expect([second.text, second.end.reason]).toEqual(['Done.', 'stop'])
    expect(gateway.calls).toHaveLength(1)
    expect(server.asked[1]?.body.messages.slice(1)).toEqual([
      question,
      { role: 'assistant', content: null, tool_calls: [ours, theirs] },
      { role: 'tool', tool_call_id: 'ours', content: 'Rome: sunny, 21 degrees' },
      { role: 'tool', tool_call_id: 'theirs', content: 'painted' },
    ])
  })

  test('J5: arguments that the client has edited are shown to the model', async () => {
    const { chat, server } = await chatting([mixed, says('Done.')], agent)
    const { end, ...heard } = await ask(chat, [question], { tools })
    const green = { name: 'paint', arguments: '{"colour":"green"}' }
    const handed = end.handed.map((call) => ({ ...call, function: green }))
    await ask(chat, comeBack({ ...heard, end: { ...end, handed } }), { tools })
    expect(server.asked[1]?.body.messages[2]).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [ours, { ...theirs, function: green }],
    })
  })

  test("S3: the staged loop interprets the client's results together with ours", async () => {
    const script = byStage({
      select: says('{"reasoning": "r", "selected_tools": ["paint", "weather__forecast"]}'),
      call: mixed,
      interpret: says('{"content": "It is blue."}'),
    })
    const { chat, server } = await chatting([script])
    const { text, stages } = await ask(chat, comeBack(await ask(chat, [question], { tools })), { tools })
    expect([text, stages]).toEqual(['It is blue.', ['interpret 1']])
    expect(server.asked[2]?.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
    ])
  })

  test('J5: earlier rounds survive any number of handovers', async () => {
    const { chat, server } = await chatting(
      [
        calls({ name: 'add', arguments: { a: 1, b: 1 }, id: 'one' }),
        calls({ name: 'paint', arguments: { colour: 'red' }, id: 'two' }),
        mixed,
        says('Done.'),
      ],
      agent,
    )
    const first = await ask(chat, [question], { tools })
    const second = await ask(chat, comeBack(first), { tools })
    const all = [...comeBack(first), ...comeBack(second).slice(1)]
    expect((await ask(chat, all, { tools })).text).toBe('Done.')
    const told = server.asked[3]?.body.messages.slice(1) as ChatMessage[]
    expect(told.map(({ role }) => role).join(' ')).toBe('user assistant tool assistant tool assistant tool tool')
    expect(told.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []))).toEqual([
      'one',
      'two',
      'ours',
      'theirs',
    ])
  })

  test('S6: an expired state leaves a valid conversation', async () => {
    const { chat } = await chatting([mixed], agent)
    const back = comeBack(await ask(chat, [question], { tools }))
    const { chat: other, server } = await chatting([says('Done.')], agent)
    expect((await ask(other, back, { tools })).text).toBe('Done.')
    expect(server.asked[0]?.body.messages.slice(1)).toEqual(back)
  })

  test('S6: a call without a result gets one, because servers refuse it otherwise', async () => {
    const { chat, server } = await chatting([says('Done.')], agent)
    await ask(chat, [
      question,
      { role: 'assistant', content: null, tool_calls: [theirs] },
      { role: 'user', content: 'So?' },
    ])
    expect(server.asked[0]?.body.messages.slice(2)).toMatchObject([
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'theirs', content: 'Error: The client sent no result.' },
      { role: 'user', content: 'So?' },
    ])
  })

  test("S6: the client's tool takes precedence over ours of the same name", async () => {
    const same = { ...paint, name: 'weather__forecast' }
    const { chat, gateway } = await chatting([calls({ name: same.name, arguments: { colour: 'blue' } })], agent)
    expect((await ask(chat, [question], { tools: [same] })).end.handed).toHaveLength(1)
    expect(gateway.calls).toHaveLength(0)
  })

  test('J5: an invalid call of a client tool goes back to the model', async () => {
    const { chat, server } = await chatting([calls({ name: 'paint', arguments: {} }), says('Well.')], agent)
    expect((await ask(chat, [question], { tools })).text).toBe('Well.')
    expect(server.asked[1]?.body.messages.at(-1)?.content).toMatch(/^Error: .*paint: .*colour/)
  })
})
