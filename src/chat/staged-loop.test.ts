import { describe, expect, test } from 'vitest'
import { ask, byStage, chatting, requestOf } from './chat.fixture.ts'
import { calls, ignores, modelServer, says } from './models/server.fixture.ts'

const selection = (...names: readonly string[]) =>
  says(JSON.stringify({ reasoning: 'The message asks for it.', selected_tools: names }))

const both = byStage({
  select: selection('weather__forecast', 'arithmetic__add'),
  call: calls(
    { name: 'weather__forecast', arguments: { city: 'Rome' }, id: 'a' },
    { name: 'arithmetic__add', arguments: { a: 2, b: 3 }, id: 'b' },
  ),
  interpret: says('{"content": "Sunny in Rome,\\nand 5. \\ud83c\\udf1e"}'),
  answer: says('Hello yourself.'),
})

const question = 'What is the weather in Rome, and what is 2 + 3?'
const answer = 'Sunny in Rome,\nand 5. 🌞'

const add = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
  additionalProperties: false,
}
const forecast = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
  required: ['city'],
  additionalProperties: false,
}

describe.each([{ stream: false }, { stream: true }])('the staged loop, with stream $stream', ({ stream }) => {
  test('S3: five stages, and one answer', async () => {
    const { chat, gateway } = await chatting([both])
    const { text, pieces, stages, end, events } = await ask(chat, question, { stream })
    expect(text).toBe(answer)
    expect(pieces.length > 1).toBe(stream)
    expect(stages).toEqual(['discover 1', 'select 1', 'call 1', 'execute 1', 'interpret 1'])
    expect(end).toEqual({
      kind: 'end',
      reason: 'stop',
      handed: [],
      usage: { promptTokens: 21, completionTokens: 9 },
      durationMs: 0,
      model: 'local',
      notes: [],
    })
    const [first, second] = gateway.calls
    expect(events.filter(({ kind }) => kind === 'call')).toEqual([
      {
        kind: 'call',
        call: 'a',
        id: first?.id,
        name: 'weather__forecast',
        server: 'weather',
        arguments: { city: 'Rome' },
      },
      {
        kind: 'call',
        call: 'b',
        id: second?.id,
        name: 'arithmetic__add',
        server: 'arithmetic',
        arguments: { a: 2, b: 3 },
      },
    ])
    expect(events.filter(({ kind }) => kind === 'result')).toMatchObject([
      { call: 'a', isError: false, text: 'Rome: sunny, 21 degrees' },
      { call: 'b', isError: false, text: '{"sum":5}' },
    ])
    expect(gateway.calls).toMatchObject([
      { parent: 'chat-1', entry: { server: 'weather', name: 'forecast' } },
      { parent: 'chat-1', entry: { server: 'arithmetic', name: 'add' } },
    ])
  })

  test('G10: each stage reports the time and the tokens up to its beginning', async () => {
    const { chat, clock } = await chatting([both])
    const steps: unknown[] = []
    for await (const event of chat.answer(requestOf(question, { stream }))) {
      if (event.kind === 'stage') steps.push([event.stage, event.atMs, event.usage?.promptTokens])
      if (event.kind === 'end') steps.push(['end', event.durationMs, event.usage.promptTokens])
      if (event.kind === 'stage') await clock.pass(10)
    }
    expect(steps).toEqual([
      ...[
        ['discover', 0, 0],
        ['select', 10, 0],
        ['call', 20, 7],
        ['execute', 30, 14],
        ['interpret', 40, 14],
      ],
      ['end', 50, 21],
    ])
  })

  test('S3, S4: the exact request of each stage', async () => {
    const { chat, server } = await chatting([both])
    await ask(chat, question, { stream, temperature: 0.5, maxTokens: 500 })
    const [select, call, interpret] = server.asked.map(({ body }) => body)
    expect(server.asked).toHaveLength(3)
    expect(select).toEqual({
      model: 'qwen3',
      stream: false,
      temperature: 0.5,
      messages: [
        { role: 'system', content: expect.stringContaining('You choose the tools') },
        {
          role: 'user',
          content: `Message:\n${question}\n\nTools:\n- arithmetic__add(a, b): Adds two numbers.\n- weather__forecast(city, days): The weather of a city.`,
        },
      ],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'tool_selection',
          strict: true,
          schema: {
            type: 'object',
            properties: {
              reasoning: expect.objectContaining({ type: 'string' }),
              selected_tools: {
                type: 'array',
                items: { type: 'string', enum: ['arithmetic__add', 'weather__forecast'] },
                maxItems: 2,
              },
            },
            required: ['reasoning', 'selected_tools'],
            additionalProperties: false,
          },
        },
      },
    })
    expect(call).toEqual({
      model: 'qwen3',
      stream: false,
      temperature: 0.5,
      messages: [
        { role: 'system', content: expect.stringContaining('Call the tools') },
        { role: 'user', content: question },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'arithmetic__add', description: 'Adds two numbers.', parameters: add },
        },
        {
          type: 'function',
          function: { name: 'weather__forecast', description: 'The weather of a city.', parameters: forecast },
        },
      ],
      tool_choice: 'auto',
    })
    expect(interpret).toEqual({
      model: 'qwen3',
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
      temperature: 0.5,
      max_tokens: 500,
      messages: [
        { role: 'system', content: expect.stringContaining('Answer the user with the results') },
        { role: 'user', content: question },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'weather__forecast', arguments: '{"city":"Rome"}' } },
            { id: 'b', type: 'function', function: { name: 'arithmetic__add', arguments: '{"a":2,"b":3}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'a', content: 'Rome: sunny, 21 degrees' },
        { role: 'tool', tool_call_id: 'b', content: '{"sum":5}' },
      ],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'final_response',
          strict: true,
          schema: {
            type: 'object',
            properties: { content: expect.objectContaining({ type: 'string' }) },
            required: ['content'],
            additionalProperties: false,
          },
        },
      },
    })
  })

  test('S3: if no tool is needed, the model answers directly', async () => {
    const { chat, server } = await chatting([byStage({ select: selection(), answer: says('Hello yourself.') })])
    const { text, stages, end } = await ask(chat, 'Hello!', { stream })
    expect([text, stages]).toEqual(['Hello yourself.', ['discover 1', 'select 1', 'answer 1']])
    expect(end).toMatchObject({ reason: 'stop', notes: [] })
    expect(server.asked[1]?.body).toMatchObject({
      messages: [
        { role: 'system', content: 'Answer the user.' },
        { role: 'user', content: 'Hello!' },
      ],
    })
    expect(server.asked[1]?.body).not.toHaveProperty('response_format')
  })
})

describe('the conversation', () => {
  test('S3: the history precedes the question, and there is one system message', async () => {
    const { chat, server } = await chatting([both])
    await ask(chat, [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello!' },
      { role: 'assistant', content: 'Hello yourself.' },
      { role: 'user', content: [{ type: 'text', text: question }] },
    ])
    const [select, call, interpret] = server.asked.map(({ body }) => body.messages)
    expect(select).toMatchObject([
      { role: 'system', content: expect.stringMatching(/^You choose the tools.*\n\nBe brief\.$/s) },
      { role: 'user', content: 'Hello!' },
      { role: 'assistant', content: 'Hello yourself.' },
      { role: 'user', content: expect.stringContaining(`Message:\n${question}`) },
    ])
    expect(call?.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
    expect(interpret?.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
      'tool',
      'tool',
    ])
  })

  test('S3: prompts are those of the configuration, and a user cannot write a placeholder into them', async () => {
    const config = {
      prompts: { select: 'As {agent} on {date}.', candidates: '<{message}>\n{tools}', interpret: '', call: '{other}' },
    }
    const { chat, server } = await chatting([both], { config })
    await ask(chat, 'What about {tools} and {agent}?')
    const [select, call, interpret] = server.asked.map(({ body }) => body.messages)
    expect(select?.[0]?.content).toBe('As default on 2027-01-15.')
    expect(select?.[1]?.content).toMatch(/^<What about \{tools\} and \{agent\}\?>\n- arithmetic__add/)
    expect(call?.[0]?.content).toBe('{other}')
    expect(interpret?.[0]?.role).toBe('user')
  })

  test('S3: prompts can print the tools with their schemas, ask for calls in a user message, and add nothing else', async () => {
    const prompts = {
      select: 'Name the tools that help, with a reason.',
      candidates: 'Input: {message}\n\nTools: {definitions}\n\nAnswer as {"reasoning": "…", "selected_tools": ["…"]}.',
      ...{ call: '', request: 'Write the calls for: {message}', interpret: '', schema: '' },
    }
    const { chat, server } = await chatting([selection('arithmetic__add', 'weather__forecast'), both, both], {
      config: { prompts },
      model: { constraint: 'json_object' },
    })
    await ask(chat, question)
    const tools = [
      { name: 'arithmetic__add', description: 'Adds two numbers.', inputSchema: add },
      { name: 'weather__forecast', description: 'The weather of a city.', inputSchema: forecast },
    ]
    const common = { model: 'qwen3', stream: false }
    const user = { role: 'user', content: question }
    expect(server.asked.map(({ body }) => body)).toEqual([
      {
        ...common,
        messages: [
          { role: 'system', content: prompts.select },
          {
            role: 'user',
            content: `Input: ${question}\n\nTools: ${JSON.stringify(tools)}\n\nAnswer as {"reasoning": "…", "selected_tools": ["…"]}.`,
          },
        ],
        response_format: { type: 'json_object' },
      },
      {
        ...common,
        messages: [{ role: 'user', content: `Write the calls for: ${question}` }],
        tools: tools.map(({ inputSchema: parameters, ...tool }) => {
          return { type: 'function', function: { ...tool, parameters } }
        }),
        tool_choice: 'auto',
      },
      {
        ...common,
        messages: [
          user,
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'a', type: 'function', function: { name: 'weather__forecast', arguments: '{"city":"Rome"}' } },
              { id: 'b', type: 'function', function: { name: 'arithmetic__add', arguments: '{"a":2,"b":3}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'a', content: 'Rome: sunny, 21 degrees' },
          { role: 'tool', tool_call_id: 'b', content: '{"sum":5}' },
        ],
        response_format: { type: 'json_object' },
      },
    ])
  })

  test('S3: an unknown model is an error that lists the models', async () => {
    const { chat } = await chatting([both])
    expect(chat.models()).toEqual(['local'])
    await expect(ask(chat, 'x', { model: 'locall' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENTS',
      message: 'There is no model "locall" in the configuration; did you mean "local"?',
    })
  })

  test('S3: tool_choice none disables all tools', async () => {
    const { chat, server } = await chatting([both])
    expect((await ask(chat, question, { toolChoice: 'none' })).stages).toEqual(['answer 1'])
    expect(server.asked).toHaveLength(1)
  })

  test('S3: tool_choice required requests calls even if nothing was selected', async () => {
    const replies = byStage({
      select: selection(),
      call: calls({ name: 'arithmetic__add', arguments: { a: 1, b: 1 } }),
      interpret: says('{"content": "2"}'),
    })
    const { chat, server } = await chatting([replies])
    expect((await ask(chat, 'x', { toolChoice: 'required' })).text).toBe('2')
    expect(server.asked[1]?.body).toMatchObject({ tool_choice: 'required', tools: { length: 2 } })
  })
})

describe('a running chat', () => {
  test('S6: running calls are cancelled when the client stops reading', async () => {
    let aborted: unknown
    const { chat, gateway } = await chatting([both], {
      interceptors: [
        (call) =>
          new Promise((_, reject) => {
            call.signal.addEventListener('abort', () => {
              aborted = call.signal.reason
              reject(call.signal.reason)
            })
          }),
      ],
    })
    for await (const event of chat.answer(requestOf(question))) if (event.kind === 'call') break
    expect(gateway.calls).toHaveLength(0)
    for await (const event of chat.answer(requestOf(question))) {
      if (event.kind === 'call' && event.call === 'b') break
    }
    expect(gateway.calls).toHaveLength(1)
    expect(aborted).toMatchObject({ code: 'CANCELLED' })
  })

  test('S6: an abort stops the model and is reported as such', async () => {
    const controller = new AbortController()
    const { chat, server } = await chatting([() => controller.abort(new Error('enough'))])
    await expect(ask(chat, question, { signal: controller.signal })).rejects.toMatchObject({ code: 'CANCELLED' })
    await server.asked[0]?.abandoned
    expect(server.asked).toHaveLength(1)
  })

  test('S6: closing the chat ends its answers with a reason', async () => {
    const { chat, server } = await chatting([ignores])
    const answer = ask(chat, question)
    const asked = await server.request(1)
    await chat[Symbol.asyncDispose]()
    await expect(answer).rejects.toMatchObject({ code: 'CANCELLED', message: expect.stringContaining('try again') })
    await asked.abandoned
  })

  test('B6: no key is in any line of the log', async () => {
    const { chat, log } = await chatting([both])
    await ask(chat, question)
    expect(JSON.stringify(log.lines)).not.toContain('sk-very-secret-key')
  })

  test('S6: a request can choose another model', async () => {
    await using other = await modelServer(both)
    const { chat } = await chatting([both], { model: { baseUrl: other.baseUrl } })
    await ask(chat, question, { model: 'local' })
    expect(other.asked).toHaveLength(3)
  })
})
