import { describe, expect, test } from 'vitest'
import type { ChatMessage } from '../../../core/chat.ts'
import { hello, patient, serving } from '../model.fixture.ts'
import { collectAnswer, type Model } from '../model.ts'
import { type AskedBody, answers, calls, json, type Reply, refusesIf, says } from '../server.fixture.ts'

const weather = {
  name: 'weather',
  description: 'Tells it.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city'],
  },
}
const map = { name: 'map', parameters: { type: 'object', additionalProperties: true } }
const tools = [weather, map]
const ask = (model: Model, more: object = {}) =>
  collectAnswer(model.complete({ messages: hello, tools, signal: patient(), ...more }))

const withoutTools = (reply: Reply) =>
  refusesIf((body: AskedBody) => body.tools !== undefined, 'this model does not support tools', reply)

/** Answers as OpenAI itself. */
const openai =
  (message: object): Reply =>
  (_asked, response) =>
    json(response, { choices: [{ message, finish_reason: 'stop' }] }, 200, { 'openai-version': '2020-10-01' })

const withResult: readonly ChatMessage[] = [
  { role: 'user', content: 'Weather?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
  },
  { role: 'tool', tool_call_id: 'a', content: '20 °C' },
]

describe('J5: tools of a server that can be strict', () => {
  test('tools are strict where possible, and nulls are removed from their arguments', async () => {
    const call = { tool_calls: [{ id: 'x', function: { name: 'weather', arguments: '{"city":"Paris","days":null}' } }] }
    const { server, model } = await serving([openai({ content: 'hi' }), openai(call)])
    await ask(model)
    const { calls } = await ask(model)
    expect(server.asked[1]?.body.tools?.map(({ function: { name, strict } }) => [name, strict])).toEqual([
      ['map', undefined],
      ['weather', true],
    ])
    expect(server.asked[1]?.body.tools?.[1]?.function).toMatchObject({
      parameters: { required: ['city', 'days'], additionalProperties: false },
    })
    expect(calls[0]?.function.arguments).toBe('{"city":"Paris"}')
  })

  test('arguments that are not JSON stay unchanged', async () => {
    const { model } = await serving([calls({ name: 'weather', arguments: '{"city": "Par' })])
    expect((await ask(model)).calls[0]?.function.arguments).toBe('{"city": "Par')
  })
})

describe("J5: a server that refuses one tool's schema", () => {
  const bad = { name: 'bad', parameters: { type: 'object', properties: { $odd: {} } } }
  const hasBad = ({ tools = [], response_format: format }: AskedBody) =>
    JSON.stringify([tools, format]).includes('$odd')
  const refusal = "Invalid schema for function 'bad': '$odd' is not supported"

  test('other tools are still offered, and the refused ones are not offered again', async () => {
    const { server, model } = await serving([refusesIf(hasBad, refusal, says('{"content": "Hi."}'))])
    for (const offered of [[bad], tools, [bad], [weather]]) await ask(model, { tools: offered })
    const constraint = { name: 'answer', schema: weather.parameters }
    const { form } = await collectAnswer(model.complete({ messages: hello, constraint, signal: patient() }))
    const offered = server.asked.map(({ body }) => body.tools?.map(({ function: { name } }) => name).join(' ') ?? '-')
    expect(offered.filter((names, index) => names !== offered[index - 1])).toEqual([
      'bad',
      '-',
      'map weather',
      '-',
      'weather',
      '-',
    ])
    expect(form).toBe('strict')
  })

  test('alternatives at the root of a schema are merged, and the tools are offered as before', async () => {
    const choice = {
      name: 'find',
      parameters: {
        type: 'object',
        properties: { limit: { type: 'integer' } },
        oneOf: [
          { properties: { by: { const: 'id' }, id: { type: 'string' } }, required: ['by', 'id'] },
          { properties: { by: { const: 'name' } }, required: ['by'] },
        ],
      },
    }
    const hasRootChoice = ({ tools = [] }: AskedBody) =>
      tools.some(({ function: { parameters } }) => 'oneOf' in (parameters as object))
    const message = "Invalid schema for function 'find': schema must not have 'oneOf' at the top level."
    const { server, model } = await serving([refusesIf(hasRootChoice, message, says('Hi.'))])
    for (let count = 0; count < 2; count++) await ask(model, { tools: [choice, weather] })
    expect(server.asked.map(({ body }) => body.tools?.length)).toEqual([2, 2, 2])
    expect(server.asked.at(-1)?.body.tools?.[0]?.function.parameters).toEqual({
      type: 'object',
      properties: {
        limit: { type: 'integer' },
        by: { anyOf: [{ const: 'id' }, { const: 'name' }] },
        id: { type: 'string' },
      },
    })
  })

  test('a refused conversation says nothing about the tools', async () => {
    const isFirst = () => server.asked.length === 1
    const refusal = 'Missing `reasoning_content` field in the assistant message at index 1'
    const { server, model } = await serving([refusesIf(isFirst, refusal, says('{"content": "Hi."}'))])
    for (let count = 0; count < 2; count++) await ask(model, { messages: withResult })
    expect(server.asked.map(({ body }) => body.tools?.length)).toEqual([2, undefined, 2])
  })
})

describe('J5: a server without tool support', () => {
  const answer = { tool_calls: [{ name: 'weather', arguments: { city: 'Paris' } }] }

  test.each([false, true])('calls are asked for under a schema instead, in pieces: %s', async (stream) => {
    const { server, model } = await serving([withoutTools(says(JSON.stringify(answer)))])
    const { calls, text, reason, form } = await ask(model, { stream, toolChoice: 'required' })
    expect(calls).toEqual([
      {
        id: expect.stringMatching(/^call_\w+$/),
        type: 'function',
        function: { name: 'weather', arguments: '{"city":"Paris"}' },
      },
    ])
    expect([text, reason, form]).toEqual(['', 'calls', undefined])
    const { body } = server.asked[1] as { body: AskedBody }
    expect([body.tools, body.tool_choice]).toEqual([undefined, undefined])
    expect(body.response_format).toMatchObject({ json_schema: { schema: { required: ['tool_calls'] } } })
    expect(body.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('"description":"Tells it."'),
    })
    await ask(model, { stream })
    await ask(model, { stream, tools: [map] })
    expect(server.asked.slice(2).map(({ body }) => body.tools)).toEqual([undefined, undefined])
  })

  test('without a required call, the model may answer with text', async () => {
    const { model } = await serving([withoutTools(says('{"content": "It is warm."}'))])
    expect(await ask(model)).toMatchObject({ text: 'It is warm.', calls: [], reason: 'stop' })
  })

  test.each([
    ['It is warm.', { text: 'It is warm.', calls: [] }],
    ['', { text: '', calls: [] }],
    [
      "Sure: {'tool_calls': [{'name': 'weather', 'arguments': {'city': 'Rome'},},]}",
      { calls: [{ function: { name: 'weather', arguments: '{"city":"Rome"}' } }] },
    ],
    ['{"tool_calls": [7, {"name": 5}, {"name": "map"}]}', { calls: [{ function: { name: 'map', arguments: '{}' } }] }],
    ['{"tool_calls": null, "content": null}', { text: '', calls: [] }],
    [
      JSON.stringify({
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":""}' } }],
      }),
      { text: '', calls: [{ type: 'function', function: { name: 'weather', arguments: '{"city":""}' } }] },
    ],
  ])('S3: an answer of %j', async (content, expected) => {
    const { model } = await serving([withoutTools(says(content))])
    expect(await ask(model)).toMatchObject(expected)
  })

  test('an incomplete call is ignored', async () => {
    const cut = JSON.stringify(answer).slice(0, -6)
    const { model } = await serving([withoutTools(says(cut, 'length'))])
    expect(await ask(model)).toMatchObject({ text: cut, calls: [], reason: 'length' })
  })

  test('an answer that was cut off is shown without its JSON', async () => {
    const { model } = await serving([withoutTools(says('{"content": "Once \\"upon', 'length'))])
    expect(await ask(model)).toMatchObject({ text: 'Once "upon', calls: [], reason: 'length' })
  })

  test('earlier calls and results are sent as text', async () => {
    const { server, model } = await serving([withoutTools(says('{}'))])
    await ask(model, { messages: withResult })
    expect(server.asked[1]?.body.messages.slice(1)).toEqual([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: '{"tool_calls":[{"name":"weather","arguments":{"city":"Rome"}}]}' },
      { role: 'user', content: 'Result of weather:\n20 °C' },
    ])
  })

  test.each([
    ["litellm.UnsupportedParamsError: Anthropic doesn't support tool calling without `tools=` param specified", 2],
    ['The toolConfig field must be defined when using toolUse and toolResult content blocks.', 2],
    ['Invalid role: tool', 6],
  ])('S5: results are sent as text if the server refuses them without tools: %s', async (message, requests) => {
    const refusal = refusesIf(({ messages }) => messages.some(({ role }) => role === 'tool'), message, says('{}'))
    const { server, model } = await serving([refusal])
    const schema = { type: 'object', properties: { content: { type: 'string' } } }
    const request = { messages: withResult, constraint: { name: 'answer', schema }, signal: patient() }
    expect((await collectAnswer(model.complete(request))).form).toBe('strict')
    expect(server.asked).toHaveLength(requests)
    expect(server.asked.at(-1)?.body.messages.at(-1)).toEqual({ role: 'user', content: 'Result of weather:\n20 °C' })
    await collectAnswer(model.complete({ messages: withResult, signal: patient() }))
    expect(server.asked.length - requests).toBe(requests === 2 ? 1 : 2)
  })

  test('J5: a server that refuses reasoning is sent none in later requests', async () => {
    const hasReasoning = ({ messages }: AskedBody) => messages.some((message) => 'reasoning_content' in message)
    const refusal = "Unknown parameter: 'messages[1].reasoning_content'."
    const { server, model } = await serving([refusesIf(hasReasoning, refusal, says('x'))])
    const messages = [...hello, { role: 'assistant', content: 'x', reasoning_content: 'Hm.' }, ...hello] as const
    for (const requests of [2, 3]) {
      await collectAnswer(model.complete({ messages, signal: patient() }))
      expect(server.asked).toHaveLength(requests)
    }
  })

  test('Ollama gets no tools', async () => {
    const { server, model } = await serving([answers({ content: '{}' }, 'stop', { system_fingerprint: 'fp_ollama' })])
    await collectAnswer(model.complete({ messages: hello, signal: patient() }))
    await ask(model)
    expect(server.asked).toHaveLength(2)
    expect(server.asked[1]?.body.tools).toBeUndefined()
  })
})
