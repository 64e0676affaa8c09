import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { defineTool } from '../tools/define-tool.ts'
import { ask, chatting } from './chat.fixture.ts'
import {
  type AskedBody,
  answers,
  calls,
  hangsUp,
  json,
  type Reply,
  refuses,
  refusesIf,
  says,
  sends,
} from './models/server.fixture.ts'

const agent = { config: { mode: 'agent', maxSteps: 4 } }
const question = 'How is Rome, and what is 2 + 3?'
const rome = calls({ name: 'weather__forecast', arguments: { city: 'Rome' }, id: 'a' })
const sum = calls({ name: 'arithmetic__add', arguments: { a: 2, b: 3 }, id: 'a' })

describe.each([{ stream: false }, { stream: true }])('the agent loop, with stream $stream', ({ stream }) => {
  test('J5: call after call until there is an answer; the exact requests', async () => {
    const { chat, server, gateway } = await chatting([rome, sum, says('Sunny, and 5.')], agent)
    const { text, stages, end, pieces } = await ask(chat, question, { stream, maxTokens: 99 })
    expect(text).toBe('Sunny, and 5.')
    expect(pieces.length > 1).toBe(stream)
    expect(stages).toEqual(['discover 1', 'call 1', 'execute 1', 'call 2', 'execute 2', 'call 3'])
    expect(end).toMatchObject({
      reason: 'stop',
      notes: [],
      usage: { promptTokens: 21, completionTokens: 9 },
      handed: [],
    })
    expect(gateway.calls).toMatchObject([
      { parent: 'chat-1', entry: { name: 'forecast' } },
      { parent: 'chat-1', entry: { name: 'add' } },
    ])
    const common = {
      model: 'qwen3',
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
      max_tokens: 99,
      tool_choice: 'auto',
      tools: [{ function: { name: 'arithmetic__add' } }, { function: { name: 'weather__forecast' } }],
    }
    const opening = [
      { role: 'system', content: expect.stringContaining('Call tools where they help') },
      { role: 'user', content: question },
    ]
    const first = [
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'weather__forecast', arguments: '{"city":"Rome"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'Rome: sunny, 21 degrees' },
    ]
    const fresh = expect.stringMatching(/^call_[\da-f]{32}$/)
    const second = [
      // Its server counts from the beginning each time; a conversation cannot have two calls of one id.
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: fresh, type: 'function', function: { name: 'arithmetic__add', arguments: '{"a":2,"b":3}' } },
        ],
      },
      { role: 'tool', tool_call_id: fresh, content: '{"sum":5}' },
    ]
    expect(server.asked.map(({ body }) => body)).toMatchObject([
      { ...common, messages: opening },
      { ...common, messages: [...opening, ...first] },
      { ...common, messages: [...opening, ...first, ...second] },
    ])
    expect(server.asked.some(({ body }) => 'response_format' in body)).toBe(false)
  })

  test('J5: text beside calls is separated from the answer', async () => {
    const { name, arguments: args } = { name: 'weather__forecast', arguments: '{"city":"Rome"}' }
    const talking = answers(
      { content: 'Let me look.', tool_calls: [{ id: 'x', type: 'function', function: { name, arguments: args } }] },
      'tool_calls',
    )
    const { chat, server } = await chatting([talking, says('Sunny.')], agent)
    expect((await ask(chat, question, { stream })).text).toBe('Let me look.\n\nSunny.')
    expect(server.asked[1]?.body.messages[2]).toMatchObject({ role: 'assistant', content: 'Let me look.' })
  })

  const thinks = (reasoning: object, extra = {}): Reply => {
    const call = { index: 0, id: 'a', function: { name: 'weather__forecast', arguments: '{"city":"Rome"}' }, ...extra }
    return ({ body }, response) => {
      const message = { ...reasoning, tool_calls: [call] }
      const choice = { [body.stream ? 'delta' : 'message']: message, finish_reason: 'tool_calls' }
      json(response, { choices: [choice] })
    }
  }

  const reasonings = [
    { reasoning_content: 'Rome, so the forecast.' },
    { reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 's', index: 0 }] },
  ]
  test.each(reasonings)('J5: reasoning goes back to the model with the results: %j', async (reasoning) => {
    const extra = { extra_content: { google: { thought_signature: 'abc' } } }
    const { chat, server } = await chatting([thinks(reasoning, extra), says('Sunny.')], agent)
    expect((await ask(chat, question, { stream })).text).toBe('Sunny.')
    expect(server.asked[1]?.body.messages[2]).toMatchObject({ ...reasoning, tool_calls: [{ id: 'a', ...extra }] })
  })

  test('J5: a server that refuses reasoning gets the results without it', async () => {
    const hasReasoning = ({ messages }: AskedBody) => messages.some((message) => 'reasoning_content' in message)
    const refusal = "Unknown parameter: 'messages[2].reasoning_content'."
    const replies = [thinks({ reasoning_content: 'Hm.' }), refusesIf(hasReasoning, refusal, says('Sunny.'))]
    const { chat, server } = await chatting(replies, agent)
    expect((await ask(chat, question, { stream })).text).toBe('Sunny.')
    expect(server.asked.map(({ body }) => body.tools?.length)).toEqual([2, 2, 2])
  })

  test('J5: a call written as text is made and not shown', async () => {
    const tagged = says('<think>Hm.</think><tool_call>{"name": "weather__forecast", "arguments": {"city": "Rome"}}')
    const { chat, gateway } = await chatting([tagged, says('Sunny.')], agent)
    const { text, events } = await ask(chat, question, { stream })
    expect(text).toBe('Sunny.')
    expect(gateway.calls).toHaveLength(1)
    expect(events.filter(({ kind }) => kind === 'thinking')).toEqual([{ kind: 'thinking', text: 'Hm.' }])
  })

  const written = ['Rome', 'Oslo', 'Bern'].map((city) =>
    JSON.stringify({ name: 'weather__forecast', arguments: { city } }),
  )

  test.each([
    ['lines', written.join('\n')],
    ['fenced lines', `\`\`\`json\n${written.join('\n')}\n\`\`\``],
    ['fences', written.map((one) => `\`\`\`json\n${one}\n\`\`\``).join('\n')],
    ['one line with semicolons', written.join('; ')],
    ['one line after a token', `<|python_tag|>${written.join('; ')}`],
    ['one line with commas', written.join(', ')],
    ['one line', written.join('')],
    ['tags', written.map((one) => `<tool_call>${one}</tool_call>`).join('\n')],
    ['lines with flaws', written.map((one) => one.replace('"name"', 'name').replace(/\}$/, ',}')).join('\n')],
  ])('J5: several calls written as %s are made in order', async (_how, text) => {
    const { chat, gateway } = await chatting([says(text), says('Sunny.')], { config: { ...agent.config, parallel: 1 } })
    expect((await ask(chat, question, { stream })).text).toBe('Sunny.')
    expect(gateway.calls.map(({ input }) => input.arguments.value)).toEqual(
      ['Rome', 'Oslo', 'Bern'].map((city) => ({ city })),
    )
  })

  test.each([
    ['one is unclear', '{"name": "weather__forecast", "arguments": {"city": "Bern" # say "now""}}', /unclear/],
    ['the last was cut off', '{"name": "weather__forecast", "arguments": {"city": "Be', /was cut off/],
  ])('J5: if of several calls %s, none is made', async (_what, last, problem) => {
    const { chat, gateway, server } = await chatting([says([...written, last].join('\n')), says('Sorry.')], agent)
    expect((await ask(chat, question, { stream })).text).toBe('Sorry.')
    expect(gateway.calls).toEqual([])
    const results = server.asked[1]?.body.messages.filter(({ role }) => role === 'tool')
    expect(results?.length).toBeGreaterThanOrEqual(3)
    for (const { content } of results ?? []) expect(content).toMatch(problem)
  })

  test('J5: an unknown tool among several calls is reported', async () => {
    const text = `${written[0]}\n{"name": "tides", "arguments": {}}`
    const { chat, gateway, server } = await chatting([says(text), says('Sunny.')], agent)
    await ask(chat, question, { stream })
    expect(gateway.calls).toHaveLength(1)
    expect(server.asked[1]?.body.messages.at(-1)?.content).toContain('There is no tool "tides"')
  })

  test('V5: numbers of a model keep their digits in the call and in the conversation', async () => {
    const written = '{"a": 1326954198812345679, "b": 1.0}'
    const exact = calls({ name: 'arithmetic__add', arguments: written })
    const { chat, gateway, server } = await chatting([exact, says('Done.')], agent)
    await ask(chat, question, { stream })
    expect(gateway.calls[0]?.input.arguments.bytes.toString()).toBe(written)
    expect(JSON.stringify(server.asked[1]?.body)).toContain('1326954198812345679')
  })

  test('J5: JSON that is not a call is an answer', async () => {
    const { chat } = await chatting([says('{"weather": "sunny"}')], agent)
    expect((await ask(chat, question, { stream })).text).toBe('{"weather": "sunny"}')
  })

  const named = { name: 'weather__forecast', description: 'Tells it.' }
  const inputSchema = { type: 'object', properties: { city: { type: 'string' } } }
  const call = '{"name": "weather__forecast", "arguments": {"city": "Rome"}}'
  test.each([
    ['a list of tools', `\`\`\`json\n${JSON.stringify([named, { name: 'arithmetic__add' }])}\n\`\`\``],
    ['lines of tools', `${JSON.stringify(named)}\n{"name": "weather__forecast", "parameters": {}}`],
    ['definitions', JSON.stringify([{ ...named, parameters: inputSchema }])],
    ['schemas', JSON.stringify([{ name: 'weather__forecast', parameters: inputSchema }])],
    ['functions', JSON.stringify([{ type: 'function', function: { ...named, parameters: inputSchema } }])],
    ['a record', '{"name": "forecast", "label": "Forecast", "arguments": {"city": "Rome"}}'],
    ['a bare name', '{"name": "forecast", "arguments": {"city": "Rome"}}'],
    ['only a name', '{"name": "weather__forecast"}'],
    ['an example in an envelope', `{"example": ${call}, "note": "how to call it"}`],
    ['an explained example', `\`\`\`json\n${call}\n\`\`\`\nThis is how the tool is called.`],
  ])('J5: an answer that only mentions tools calls none: %s', async (_what, answer) => {
    const { chat, gateway } = await chatting([says(answer), says('Called.')], agent)
    expect((await ask(chat, question, { stream })).text).toBe(answer)
    expect(gateway.calls).toEqual([])
  })
})

describe('J5: problems go back to the model', () => {
  const lastResult = async (reply: Reply, options: object = agent) => {
    const { chat, server } = await chatting([reply, says('I see.')], options)
    expect((await ask(chat, question)).text).toBe('I see.')
    return server.asked[1]?.body.messages.at(-1)?.content
  }

  test.each<readonly [string, Reply, string | RegExp]>([
    [
      'a tool that there is not',
      calls({ name: 'weather__forcast', arguments: {} }),
      'Error: There is no tool "weather__forcast"; did you mean "weather__forecast"?',
    ],
    [
      'a tool like no other',
      calls({ name: 'rm', arguments: {} }),
      'Error: There is no tool "rm"; available: arithmetic__add, weather__forecast.',
    ],
    [
      'a meta-tool',
      calls({ name: 'toolway__execute_tool', arguments: { server: 'weather', tool: 'forecast' } }),
      /^Error: There is no tool/,
    ],
    [
      'arguments that do not fit',
      calls({ name: 'weather__forecast', arguments: { days: 99 } }),
      /^Error: Invalid arguments for weather__forecast: .*city/,
    ],
    [
      'arguments that are no JSON',
      calls({ name: 'weather__forecast', arguments: 'Rome, please' }),
      /^Error: .*weather__forecast .*contains no JSON.*one JSON object/,
    ],
    [
      'S4: arguments whose strings are unclear',
      calls({ name: 'weather__forecast', arguments: '{"city": "Rome" # say "now"", "days": 2}' }),
      /^Error: .*weather__forecast .*unclear where its strings end/,
    ],
    [
      'S4: a call written as text whose strings are unclear',
      says('{"name": "weather__forecast", "arguments": {"city": "Rome" # say "now"", "days": 2}}'),
      /^Error: .*weather__forecast .*unclear where its strings end/,
    ],
    [
      'S4: several objects as arguments',
      calls({ name: 'weather__forecast', arguments: '{"city": "Rome"}{"city": "Oslo"}' }),
      /contains several JSON objects/,
    ],
    ['arguments that were cut off', calls({ name: 'weather__forecast', arguments: '{"city": "Ro' }), /was cut off/],
    ...['{"a": 1', '{"a": 1, "b": 2, ', '{"a": 1, "b": 2'].map((text): readonly [string, Reply, RegExp] => [
      `S6: a stream that ends without a reason in ${text}`,
      sends(
        'text/event-stream',
        `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'add', arguments: text } }] } }] })}\n\n`,
      ),
      /was cut off/,
    ]),
    [
      'a tool that fails',
      calls({ name: 'weather__forecast', arguments: { city: 'Atlantis' } }),
      /^Error: forecast failed/,
    ],
    [
      'arguments that can be mended',
      calls({ name: 'forecast', arguments: "{city: 'Rome',}" }),
      'Rome: sunny, 21 degrees',
    ],
  ])('%s', async (_what, reply, result) => {
    expect(await lastResult(reply)).toEqual(typeof result === 'string' ? result : expect.stringMatching(result))
  })

  test('of forty calls at once, thirty-two are made', async () => {
    const many = calls(...Array.from({ length: 40 }, (_, a) => ({ name: 'add', arguments: { a, b: 0 }, id: `c${a}` })))
    expect(await lastResult(many)).toBe('Error: Too many calls at once: only the first 32 were run.')
  })

  test('calls run in parallel, up to the limit', async () => {
    let running = 0
    let most = 0
    const slow = defineTool({
      name: 'slow',
      description: 'Takes its time.',
      input: z.object({ n: z.number() }),
      async run({ n }) {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        return String(n)
      },
    })
    const many = calls(...Array.from({ length: 9 }, (_, n) => ({ name: 'slow', arguments: { n }, id: `c${n}` })))
    const { chat, server } = await chatting([many, says('Done.')], {
      config: { mode: 'agent', parallel: 3 },
      servers: { work: [slow] },
    })
    await ask(chat, 'x')
    expect(most).toBe(3)
    const told = server.asked[1]?.body.messages.slice(-9).map(({ content }) => content)
    expect(told).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8'])
  })
})

describe('J5: when it stops', () => {
  test('at the step limit it answers without tools, with a note', async () => {
    let city = 0
    const wandering: Reply = (asked, response) =>
      asked.body.tools
        ? calls({ name: 'weather__forecast', arguments: { city: `${city++}` } })(asked, response)
        : says('That is all.')(asked, response)
    const { chat, server } = await chatting([wandering], agent)
    const { text, end, stages } = await ask(chat, question)
    expect(text).toBe('That is all.')
    expect(end).toMatchObject({
      reason: 'steps',
      notes: [expect.stringContaining('4 steps')],
    })
    expect(stages.at(-1)).toBe('answer 5')
    expect(server.asked).toHaveLength(5)
    expect(server.asked[4]?.body.messages.at(-1)?.content).toMatch(/^No more tools can be called, because the limit/)
    expect((await ask(chat, question, { maxSteps: 1 })).end.notes).toEqual([
      expect.stringContaining('limit of 1 step was'),
    ])
  })

  test('repeated calls get a hint and end the loop early', async () => {
    const stuck: Reply = (asked, response) => (asked.body.tools ? rome : says('Enough.'))(asked, response)
    const { chat, server } = await chatting([stuck], { config: { mode: 'agent', maxSteps: 50 } })
    const { text, end } = await ask(chat, question)
    expect([text, end.reason]).toEqual(['Enough.', 'steps'])
    expect(end.notes).toEqual([expect.stringContaining('called 4 times with the same arguments and the same result')])
    expect(server.asked).toHaveLength(5)
    expect(server.asked[2]?.body.messages.at(-1)?.content).toMatch(/21 degrees\n\(You made this call before/)
  })

  test('tool_choice required holds for the first step', async () => {
    const { chat, server } = await chatting([rome, says('Well.')], agent)
    await ask(chat, question, { toolChoice: 'required' })
    expect(server.asked.map(({ body }) => body.tool_choice)).toEqual(['required', 'auto'])
  })

  test('S5: if the model fails after tool calls, their results are returned', async () => {
    const { chat, log } = await chatting([rome, refuses(500, 'CUDA out of memory')], agent)
    const { text, end } = await ask(chat, question)
    expect(text).toMatch(/raw results:\)\n\nweather__forecast:\nRome: sunny, 21 degrees$/)
    expect(end.notes).toEqual(['The model failed before it gave an answer; the raw results follow.'])
    expect(JSON.stringify(log.lines)).toContain('CUDA out of memory')
  })

  test('S5: if the model does not summarize the results, they are returned', async () => {
    const { chat } = await chatting([rome, says('')], agent)
    expect((await ask(chat, question)).text).toContain('Rome: sunny, 21 degrees')
  })

  test('S5: a dropped connection is retried; a failure without results is an error', async () => {
    const { chat } = await chatting([hangsUp(), says('Here.'), hangsUp()], agent)
    expect((await ask(chat, question)).text).toBe('Here.')
    await expect(ask(chat, question)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })
})
