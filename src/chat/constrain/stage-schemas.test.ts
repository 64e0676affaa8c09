import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { readGrammar } from './gbnf/grammar.fixture.ts'
import { bestGrammar, toGrammar } from './gbnf/grammar.ts'
import { asFunctionCalls, callSchema, finalSchema, selectionSchema } from './stage-schemas.ts'
import { strictify } from './strict/strictify.ts'

const functionCallResponseSchema = {
  type: 'object',
  properties: {
    tool_calls: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', minLength: 1 },
          type: { type: 'string', enum: ['function'] },
          function: {
            type: 'object',
            properties: { name: { type: 'string' }, arguments: { type: 'string' } },
            required: ['name', 'arguments'],
            additionalProperties: false,
          },
        },
        required: ['id', 'type', 'function'],
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
}

// Compiles each schema once, and the schema of schemas too.
const ajv = new Ajv2020({ strict: false, logger: false })
const fits = (schema: object, value: unknown) => ajv.compile(schema)(value)

const tree = {
  name: 'make_tree',
  parameters: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://example.com/tree',
    type: 'object',
    properties: { root: { $ref: '#/$defs/node' }, again: { $ref: '#' } },
    required: ['root'],
    $defs: { node: { type: 'object', properties: { children: { type: 'array', items: { $ref: '#/$defs/node' } } } } },
  },
}
const weather = {
  name: 'get_weather',
  parameters: {
    type: 'object',
    properties: { city: { $ref: '#/definitions/node' }, days: { type: 'integer', minimum: 1, maximum: 16 } },
    required: ['city'],
    definitions: { node: { type: 'string', maxLength: 20 } },
  },
}
const tools = [weather, tree]

const answers = [
  { tool_calls: [] },
  { tool_calls: [{ name: 'get_weather', arguments: { city: 'Paris', days: 3 } }] },
  {
    tool_calls: [
      { name: 'make_tree', arguments: { root: { children: [{}] }, again: { root: {} } } },
      { name: 'get_weather', arguments: { city: 'x' } },
    ],
  },
]
const wrong = [
  {},
  { tool_calls: [{ name: 'other', arguments: {} }] },
  { tool_calls: [{ name: 'get_weather', arguments: { root: {} } }] },
  { tool_calls: [{ name: 'get_weather', arguments: { city: 'x', days: 17 } }] },
  { tool_calls: [{ name: 'make_tree', arguments: { root: { children: [1] } } }] },
  { tool_calls: [{ name: 'make_tree', arguments: { root: {}, again: { city: 'x' } } }] },
]

describe('S3: the schema of calls', () => {
  const calls = callSchema(tools)
  const grammar = readGrammar(toGrammar(calls))

  test.each(answers)('takes %j, in every form', (answer) => {
    expect(fits(calls, answer)).toBe(true)
    expect(grammar.matches(JSON.stringify(answer))).toBe(true)
  })

  test.each(wrong)('refuses %j, in every form', (answer) => {
    expect(fits(calls, answer)).toBe(false)
    expect(grammar.matches(JSON.stringify(answer))).toBe(false)
  })

  test('can be strict, with the definitions of every tool apart', () => {
    const { schema, restore } = strictify(callSchema(tools))
    expect(Object.keys(schema.$defs as object)).toHaveLength(3)
    const answer = { tool_calls: [{ name: 'get_weather', arguments: { city: 'x', days: null } }] }
    expect(fits(schema, answer)).toBe(true)
    expect(restore(answer)).toEqual({ tool_calls: [{ name: 'get_weather', arguments: { city: 'x' } }] })
  })

  test('one unusual schema does not affect the other tools', () => {
    const odd = {
      name: 'odd',
      parameters: {
        type: 'object',
        properties: { x: { type: 'float', not: {} }, y: { oneOf: [{ type: 'integer' }, { type: 'number' }] } },
        required: ['x'],
      },
    }
    const { gbnf, dropped } = bestGrammar(callSchema([weather, odd]))
    const grammar = readGrammar(gbnf)
    expect(dropped.map(({ keyword }) => keyword).sort()).toEqual(['not', 'oneOf', 'type'])
    expect(grammar.matches('{"tool_calls":[{"name":"odd","arguments":{"x":1.5,"y":2}}]}')).toBe(true)
    expect(grammar.matches('{"tool_calls":[{"name":"odd","arguments":{"x":1,"y":"a"}}]}')).toBe(false)
    expect(grammar.matches('{"tool_calls":[{"name":"get_weather","arguments":{"days":1}}]}')).toBe(false)
  })

  test('without tools only an empty list of calls is valid', () => {
    const grammar = readGrammar(toGrammar(callSchema([])))
    expect([grammar.matches('{"tool_calls":[]}'), grammar.matches('{"tool_calls":[{}]}')]).toEqual([true, false])
  })

  test('becomes calls in the format of OpenAI, each with its own id', () => {
    let count = 0
    const response = asFunctionCalls(answers[2] as never, () => `call_${++count}`)
    expect(response.tool_calls?.map(({ id }) => id)).toEqual(['call_1', 'call_2'])
    expect(response.tool_calls?.[1]?.function).toEqual({ name: 'get_weather', arguments: '{"city":"x"}' })
    expect(fits(functionCallResponseSchema, response)).toBe(true)
    expect(fits(functionCallResponseSchema, {})).toBe(true)
    expect(fits(functionCallResponseSchema, { tool_calls: [{ name: 'x' }] })).toBe(false)
  })
})

describe('S3: the other schemas', () => {
  test('a selection names candidates only, after its reasoning', () => {
    const grammar = readGrammar(toGrammar(selectionSchema(['a', 'b'])))
    expect(grammar.matches('{"reasoning": "because", "selected_tools": ["b", "a"]}')).toBe(true)
    expect(grammar.matches('{"reasoning": "because", "selected_tools": []}')).toBe(true)
    expect(grammar.matches('{"reasoning": "because", "selected_tools": ["c"]}')).toBe(false)
    expect(grammar.matches('{"selected_tools": ["a"], "reasoning": "because"}')).toBe(false)
    expect(grammar.matches('{"reasoning": "because"}')).toBe(false)
    expect(strictify(selectionSchema(['a'])).dropped).toEqual([{ at: '/properties/reasoning', keyword: 'maxLength' }])
  })

  test('a selection among nothing is empty', () => {
    const grammar = readGrammar(toGrammar(selectionSchema([])))
    expect([
      grammar.matches('{"reasoning":"","selected_tools":[]}'),
      grammar.matches('{"reasoning":"","selected_tools":["a"]}'),
    ]).toEqual([true, false])
  })

  test('a final answer is text', () => {
    const grammar = readGrammar(toGrammar(finalSchema))
    expect(grammar.matches('{"content": "It is 20 °C.\\nEnjoy!"}')).toBe(true)
    expect(grammar.matches(`{"content": "${'x'.repeat(20_000)}"}`)).toBe(true)
    expect(grammar.matches('{"content": null}')).toBe(false)
  })
})
