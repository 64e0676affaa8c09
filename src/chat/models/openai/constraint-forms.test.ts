import { describe, expect, test } from 'vitest'
import { readGrammar } from '../../constrain/gbnf/grammar.fixture.ts'
import { finalSchema, selectionSchema } from '../../constrain/stage-schemas.ts'
import { failure, hello, patient, serving } from '../model.fixture.ts'
import { collectAnswer, type Model } from '../model.ts'
import { type AskedBody, answers, json, type Reply, refuses, refusesIf, says, sends } from '../server.fixture.ts'
import type { Preference } from '../server-profile.ts'

const schema = {
  type: 'object',
  properties: { a: { type: 'string' }, b: { type: 'integer' } },
  required: ['a'],
} as const
const constraint = { name: 'answer', schema }
const ask = (model: Model, more: object = {}) =>
  collectAnswer(model.complete({ messages: hello, constraint, signal: patient(), ...more }))

/** In which form a request went out. */
function formOf(body: AskedBody): string {
  if (body.grammar !== undefined || body.structured_outputs !== undefined) return 'grammar'
  const { type, json_schema } = body.response_format ?? {}
  if (type === 'json_schema') return json_schema?.strict ? 'strict' : 'schema'
  return type ?? 'prompt'
}

const refusing = (...forms: readonly string[]) =>
  refusesIf((body) => forms.includes(formOf(body)), 'response_format is not supported', says('{"a": "x", "b": null}'))

describe('S4: fallback to weaker forms', () => {
  test('a server that accepts everything gets a strict schema, and nulls are removed', async () => {
    const { server, model } = await serving([says('{"a": "x", "b": null}')])
    const { text, form, restore } = await ask(model)
    expect(server.asked[0]?.body.response_format).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        strict: true,
        schema: {
          type: 'object',
          properties: { a: { type: 'string' }, b: { type: ['integer', 'null'] } },
          required: ['a', 'b'],
          additionalProperties: false,
        },
      },
    })
    expect(server.asked[0]?.body.messages).toEqual(hello)
    expect([form, restore(JSON.parse(text))]).toEqual(['strict', { a: 'x' }])
  })

  test.each([
    [['strict'], ['strict', 'schema']],
    [
      ['strict', 'schema'],
      ['strict', 'schema', 'grammar'],
    ],
    [
      ['strict', 'schema', 'grammar'],
      ['strict', 'schema', 'grammar', 'json_object'],
    ],
    [
      ['strict', 'schema', 'grammar', 'json_object'],
      ['strict', 'schema', 'grammar', 'json_object', 'prompt'],
    ],
  ])('a server that refuses %j is asked one rung down at a time, and never up again', async (refused, tried) => {
    const { server, model, log } = await serving([refusing(...refused)])
    expect((await ask(model)).form).toBe(tried.at(-1))
    expect(server.asked.map(({ body }) => formOf(body))).toEqual(tried)
    expect((await ask(model)).form).toBe(tried.at(-1))
    expect(server.asked.slice(tried.length).map(({ body }) => formOf(body))).toEqual([tried.at(-1)])
    expect(log.lines.filter(({ level }) => level === 'info')).toHaveLength(1)
  })

  test('a form accepted before is dropped only for the refused schema', async () => {
    const other = { name: 'other', schema: selectionSchema(['x']) }
    const isOther = (body: AskedBody) =>
      formOf(body) === 'strict' && body.response_format?.json_schema?.name === 'other'
    const { server, model } = await serving([refusesIf(isOther, 'Invalid schema', says('{}'))])
    await ask(model)
    await ask(model, { constraint: other })
    await ask(model, { constraint: other })
    await ask(model)
    expect(server.asked.map(({ body }) => formOf(body))).toEqual(['strict', 'strict', 'schema', 'schema', 'strict'])
  })

  test('a request refused in every form teaches nothing and reports the first refusal', async () => {
    const { server, model } = await serving([
      refuses(400, 'messages: role "user" expected'),
      refuses(400, 'no'),
      refuses(400, 'no'),
      refuses(400, 'no'),
      refuses(400, 'no'),
      says('{}'),
    ])
    const error = await failure(ask(model))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENTS', message: expect.stringContaining('role "user" expected') })
    expect(server.asked).toHaveLength(5)
    expect((await ask(model)).form).toBe('strict')
  })

  test('a conversation that is too long is not sent again', async () => {
    const { server, model } = await serving([refuses(400, "This model's maximum context length is 4096 tokens")])
    expect(await failure(ask(model))).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(server.asked).toHaveLength(1)
  })

  test('a schema that cannot be strict is not sent as one', async () => {
    const { server, model } = await serving([says('{}')])
    await ask(model, {
      constraint: { name: 'map', schema: { type: 'object', additionalProperties: { type: 'string' } } },
    })
    expect(server.asked.map(({ body }) => formOf(body))).toEqual(['schema'])
  })

  test('weaker forms describe the schema in the system message', async () => {
    const { server, model } = await serving([refusing('strict', 'schema', 'grammar')])
    await ask(model, { messages: [{ role: 'system', content: 'Be brief.' }, ...hello] })
    expect(server.asked[3]?.body).toMatchObject({
      response_format: { type: 'json_object' },
      messages: [{ role: 'system' }, { role: 'user' }],
    })
    expect(server.asked[3]?.body.messages[0]?.content).toBe(
      `Be brief.\n\nAnswer with one JSON object and nothing else: no explanation, no code fence. It must match this JSON Schema:\n${JSON.stringify(schema)}`,
    )
  })

  test('an error in a response with status 200 is a refusal', async () => {
    const inside = sends(
      'text/event-stream',
      'data: {"error": {"object": "error", "type": "BadRequestError", "code": 400, "message": "grammar is not supported"}}\n\n',
    )
    const { server, model } = await serving([inside, says('{"a": "x"}')])
    expect((await ask(model, { stream: true })).form).toBe('schema')
    expect(server.asked).toHaveLength(2)
  })

  test.each<readonly [Preference, readonly string[], string]>([
    ['json_schema', [], 'strict'],
    ['json_schema', ['strict', 'schema', 'grammar'], 'json_object'],
    ['grammar', [], 'grammar'],
    ['grammar', ['grammar'], 'json_object'],
    ['json_object', [], 'json_object'],
    ['none', [], 'prompt'],
  ])('constraint: %s, where %j is refused', async (preference, refused, form) => {
    const { model } = await serving([refusing(...refused)], { constraint: preference })
    expect((await ask(model)).form).toBe(form)
  })

  test('the grammar accepts valid values', async () => {
    const { server, model } = await serving([says('{}')], { constraint: 'grammar' })
    await ask(model, { constraint: { name: 'final', schema: finalSchema } })
    const grammar = readGrammar(server.asked[0]?.body.grammar as string)
    expect([grammar.matches('{"content": "x"}'), grammar.matches('{"content": 1}')]).toEqual([true, false])
    // Of a server of unknown kind nobody knows whether it looks at grammars.
    expect(server.asked[0]?.body.messages[0]?.role).toBe('system')
  })
})

describe('S4: the first answer shows the kind of server', () => {
  test.each<readonly [string, object, readonly string[], readonly string[]]>([
    ['llama.cpp', { system_fingerprint: 'b6123-abcdef' }, ['strict', 'grammar'], ['grammar']],
    ['Ollama', { system_fingerprint: 'fp_ollama' }, ['strict', 'schema'], []],
  ])('%s', async (_name, extra, forms) => {
    const { server, model } = await serving([answers({ content: '{"a": "x"}' }, 'stop', extra)])
    await ask(model)
    await ask(model)
    expect(server.asked.map(({ body }) => formOf(body))).toEqual(forms)
  })

  test('vLLM gets the grammar in its own field', async () => {
    const stop = { choices: [{ message: { content: '{}' }, finish_reason: 'stop', stop_reason: null }] }
    const refuseSchemas = refusesIf(
      (body) => body.response_format !== undefined && server.asked.length > 1,
      'unsupported',
      (_asked, response) => response.end(JSON.stringify(stop)),
    )
    const { server, model } = await serving([refuseSchemas])
    await ask(model)
    await ask(model)
    expect(server.asked.at(-1)?.body.structured_outputs).toEqual({ grammar: expect.stringContaining('root ::=') })
    expect(server.asked.at(-1)?.body.messages).toEqual(hello)
  })
})

describe('unsupported fields', () => {
  test.each([
    ['stream_options', 'Extra inputs are not permitted: stream_options', {}],
    ['temperature', "Unsupported value: 'temperature' does not support 0 with this model.", { temperature: 0 }],
  ])('S6: %s is left out from then on', async (field, message, more) => {
    const { server, model } = await serving([refusesIf((body) => field in body, message, says('{"a": "x"}'))])
    for (let count = 0; count < 2; count++) expect((await ask(model, { stream: true, ...more })).form).toBe('strict')
    expect(server.asked.map(({ body }) => field in body)).toEqual([true, false, false])
  })

  test.each([
    ["'max_tokens' is too large: 100000. It must be at most 4096.", { maxTokens: 100_000 }],
    ['max_tokens: at most 4096', { maxTokens: 100_000 }],
    ['temperature must be between 0 and 2', { temperature: 7 }],
    ['Invalid max_tokens value, the valid range of max_tokens is [1, 8192]', { maxTokens: 100_000 }],
  ])('S6: a value that is out of bounds costs neither the field nor the form: %s', async (message, wrong) => {
    const { server, model } = await serving([refuses(400, message), says('{"a": "x"}')])
    expect(await failure(ask(model, wrong))).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect(server.asked).toHaveLength(1)
    expect((await ask(model, { maxTokens: 9, temperature: 1 })).form).toBe('strict')
    expect(server.asked.at(-1)?.body).toMatchObject({ max_tokens: 9, temperature: 1 })
  })

  const badSchema = "Invalid schema for function 'temperature': 'foo' is not supported"
  const badImage =
    "1 validation error: image_url unknown format [type=value_error, input_value={'stream_options': {}, 'temperature': 1}]"
  test.each([
    ["Invalid schema for function 'get_temperature': unknown type", null],
    ['Unknown keyword in the parameters of temperature', 'tools[0].function.parameters'],
    [badSchema, null],
    [badImage, null],
    ['[{"type": "missing", "loc": ["body", "messages", 0], "input": {"temperature": 1, "unknown": 1}}]', null],
    ['temperature makes this invalid', null],
  ])('S6: a refusal that only mentions a field does not remove it: %s', async (message, param) => {
    const refusal: Reply = (_asked, response) => json(response, { error: { message, param } }, 400)
    const { server, model } = await serving([...Array(5).fill(refusal), says('{"a": "x"}')])
    expect(await failure(ask(model, { stream: true, temperature: 1 }))).toMatchObject({ code: 'INVALID_ARGUMENTS' })
    expect((await ask(model, { stream: true, temperature: 1 })).form).toBe('strict')
    expect(server.asked.at(-1)?.body).toMatchObject({ temperature: 1, stream_options: {} })
  })

  test.each([
    [{ error: { message: 'No.', param: 'temperature', code: 'unsupported_parameter' } }],
    [{ detail: [{ type: 'extra_forbidden', loc: ['body', 'temperature'], msg: 'Extra inputs', input: 1 }] }],
    [{ message: "[{'type': 'extra_forbidden', 'loc': ('body', 'temperature'), 'msg': 'x', 'input': 1}]" }],
    [{ error: '`temperature` is deprecated for this model.' }],
  ])('S6: a field that the server names as unsupported is left out: %j', async (error) => {
    const refusal: Reply = (asked, response) =>
      'temperature' in asked.body ? json(response, error, 400) : says('{"a": "x"}')(asked, response)
    const { server, model } = await serving([refusal])
    await ask(model, { temperature: 1 })
    expect(server.asked).toHaveLength(2)
  })

  test('S6: max_tokens is replaced by max_completion_tokens', async () => {
    const refusal =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    const { server, model } = await serving([refusesIf((body) => 'max_tokens' in body, refusal, says('{"a": "x"}'))])
    await ask(model, { maxTokens: 9 })
    expect(server.asked.at(-1)?.body).toMatchObject({ max_completion_tokens: 9 })
  })
})
