import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { Json } from '../../json/json.ts'
import { valueAt } from '../../json/json-pointer.ts'
import { type ModelApi, modelApis, refusals } from './model-apis.fixture.ts'
import { argumentRestorer, portableDefinition, portableName } from './portable-tool.ts'
import { rewriteSchema } from './rewrite-schema.ts'

const apis = Object.keys(modelApis) as ModelApi[]

const toolWith = (inputSchema: Readonly<Record<string, unknown>>, name = 'a_tool') => ({
  name,
  description: 'Does it.',
  inputSchema,
})

/** The portable schema of one member, which all APIs have to accept. */
function memberSchema(member: unknown, more: Readonly<Record<string, unknown>> = {}): unknown {
  const tool = toolWith({ type: 'object', properties: { a: member }, ...more })
  const portable = portableDefinition(tool, tool)
  for (const api of apis) expect(refusals(api, portable), api).toEqual([])
  return valueAt(portable.inputSchema, ['properties', 'a'])
}

/** What a tool gets when a caller gives these arguments for its portable schema. */
function restored(inputSchema: Readonly<Record<string, unknown>>, args: Record<string, unknown>): unknown {
  const tool = toolWith({ type: 'object', ...inputSchema })
  for (const api of apis) expect(refusals(api, portableDefinition(tool, tool)), api).toEqual([])
  const restore = argumentRestorer(tool)
  const result = restore ? restore(Json.of(args)).value : args
  const validate = new Ajv2020({ strict: false }).compile(tool.inputSchema)
  expect([validate(result), validate.errors]).toEqual([true, null])
  return result
}

const shapes = readFileSync(new URL('../../../tests/fixtures/real-tool-shapes.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))

test('W8: the schemas of 100 published servers are refused by each API as they are, and by none in their portable form', () => {
  const [{ servers }, ...schemas] = shapes
  expect(servers).toBeGreaterThan(100)
  const before = new Map(apis.map((api) => [api, 0]))
  for (const inputSchema of schemas) {
    const tool = toolWith(inputSchema)
    const portable = portableDefinition(tool, tool)
    for (const api of apis) {
      if (refusals(api, tool).length > 0) before.set(api, (before.get(api) ?? 0) + 1)
      expect(refusals(api, portable), `${api}: ${JSON.stringify(inputSchema)}`).toEqual([])
    }
  }
  for (const [api, count] of before) expect(count, api).toBeGreaterThan(0)
})

test('W8: a schema that is portable already stays as it is, and its calls are not converted', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'A path.' },
      mode: { type: 'string', enum: ['a', 'b'] },
      rows: { type: 'array', items: { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } } },
    },
    required: ['path'],
  }
  expect(rewriteSchema(inputSchema)).toEqual({ schema: inputSchema, restoration: undefined })
})

test('W8: keywords that an API refuses are told in the description', () => {
  const member = { type: 'integer', title: 'Port', minimum: 1, maximum: 65_535, default: 80 }
  expect(memberSchema(member)).toEqual({
    type: 'integer',
    description: 'Port (minimum: 1; maximum: 65535; default: 80)',
  })
  expect(memberSchema({ type: 'string', format: 'email', description: 'Whom.' })).toEqual({
    type: 'string',
    description: 'Whom. (format: email)',
  })
  expect(memberSchema({ type: 'string', format: 'date-time' })).toEqual({ type: 'string', format: 'date-time' })
  expect(memberSchema({ type: 'integer', maximum: Number.MAX_SAFE_INTEGER })).toEqual({ type: 'integer' })
})

test('W8: const and enum become an enum of texts, or a type with the values in the description', () => {
  expect(memberSchema({ const: 'x' })).toEqual({ type: 'string', enum: ['x'] })
  expect(memberSchema({ enum: [1, 2] })).toEqual({ type: 'integer', description: '(one of: 1,2)' })
  expect(memberSchema({ enum: ['a', '', 'a', null] })).toEqual({ type: 'string', enum: ['a'] })
  expect(memberSchema({ enum: Array.from({ length: 300 }, (_, at) => `v${at}`) })).toMatchObject({ type: 'string' })
})

test('W8: lists of types and unions become one schema for each type', () => {
  expect(memberSchema({ type: ['string', 'null'] })).toEqual({ type: 'string' })
  expect(memberSchema({ type: ['string', 'integer'], description: 'An id.' })).toEqual({
    anyOf: [
      { type: 'string', description: 'An id.' },
      { type: 'integer', description: 'An id.' },
    ],
  })
  expect(memberSchema({ anyOf: [{ not: {} }, { type: 'integer' }, { type: 'number' }] })).toEqual({ type: 'number' })
})

test('W8: alternatives of an object become one object whose description says what is needed together', () => {
  const email = {
    type: 'object',
    properties: { kind: { const: 'email' }, to: { type: 'string' } },
    required: ['kind', 'to'],
  }
  const sms = {
    type: 'object',
    properties: { kind: { const: 'sms' }, number: { type: 'string' } },
    required: ['kind', 'number'],
  }
  expect(memberSchema({ oneOf: [email, sms] })).toEqual({
    type: 'object',
    description: '(needs kind "email", to; or kind "sms", number)',
    properties: {
      kind: { type: 'string', enum: ['email', 'sms'] },
      to: { type: 'string' },
      number: { type: 'string' },
    },
    required: ['kind'],
  })
  const { schema } = rewriteSchema({ oneOf: [email, sms] })
  expect(schema).toMatchObject({ type: 'object', required: ['kind'] })
  expect(schema).not.toHaveProperty('oneOf')
})

test('W8: references, allOf and conditions are written out', () => {
  const $defs = { id: { type: 'string', description: 'An id.' }, page: { properties: { page: { type: 'integer' } } } }
  expect(memberSchema({ $ref: '#/$defs/id' }, { $defs })).toEqual({ type: 'string', description: 'An id.' })
  const all = { allOf: [{ $ref: '#/$defs/page' }, { properties: { size: { type: 'integer' } }, required: ['size'] }] }
  expect(memberSchema({ type: 'object', ...all }, { $defs })).toEqual({
    type: 'object',
    properties: { page: { type: 'integer' }, size: { type: 'integer' } },
    required: ['size'],
  })
  const then = { properties: { b: { type: 'string' } }, required: ['b'] }
  expect(rewriteSchema({ type: 'object', properties: { a: { type: 'string' } }, if: {}, then }).schema).toEqual({
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' } },
  })
})

test('W8: a recursion is given as text once, and converted back', () => {
  const node = {
    type: 'object',
    properties: { name: { type: 'string' }, child: { $ref: '#/$defs/node' } },
    required: ['name'],
  }
  const schema = { properties: { root: { $ref: '#/$defs/node' } }, $defs: { node } }
  const args = { root: { name: 'a', child: '{"name":"b","child":{"name":"c"}}' } }
  expect(restored(schema, args)).toEqual({ root: { name: 'a', child: { name: 'b', child: { name: 'c' } } } })
})

test('W8: what is nested too deeply is given as text, and converted back', () => {
  const deep = (levels: number): object =>
    levels === 0 ? { type: 'string' } : { type: 'object', properties: { next: deep(levels - 1) } }
  const nested = (levels: number): unknown => (levels === 0 ? 'end' : { next: nested(levels - 1) })
  const schema = { properties: { top: deep(8) } }
  const args = { top: { next: { next: { next: { next: JSON.stringify(nested(4)) } } } } }
  expect(restored(schema, args)).toEqual({ top: nested(8) })
})

test('W8: objects with any members, and values of any type, are given as text, and converted back', () => {
  const free = {
    properties: {
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      value: {},
      list: { type: 'array' },
    },
  }
  const args = { labels: '{"a":"b"}', value: '[1,{"x":2}]', list: ['text', 1, '{"y":true}'] }
  expect(restored(free, args)).toEqual({ labels: { a: 'b' }, value: [1, { x: 2 }], list: ['text', 1, { y: true }] })
  // What has the original shape already, and text that is no JSON, stay.
  expect(restored(free, { labels: { a: 'b' }, value: '{no' })).toEqual({ labels: { a: 'b' }, value: '{no' })
})

test('W8: further members of an object with named ones are given as text, and become members', () => {
  const schema = { properties: { a: { type: 'string' } }, patternProperties: { '^x-': { type: 'integer' } } }
  expect(restored(schema, { a: '1', additional_properties: '{"x-b":2}' })).toEqual({ a: '1', 'x-b': 2 })
  const map = { properties: {}, additionalProperties: { type: 'integer' } }
  expect(restored(map, { additional_properties: '{"b":2}' })).toEqual({ b: 2 })
})

test('W8: names of members that an API refuses are replaced, and restored', () => {
  const schema = {
    properties: {
      'filter[id]': { type: 'string' },
      filter_id_: { type: 'string' },
      $top: { type: 'integer' },
      '1st': { type: 'object', properties: { 'a-b': { type: 'string' } } },
      [`${'x'.repeat(70)}`]: { type: 'string' },
    },
    required: ['filter[id]'],
    additionalProperties: false,
  }
  const args = { filter_id__2: 'a', filter_id_: 'b', _top: 3, _1st: { a_b: 'c' }, ['x'.repeat(64)]: 'd' }
  const given = { 'filter[id]': 'a', filter_id_: 'b', $top: 3, '1st': { 'a-b': 'c' }, ['x'.repeat(70)]: 'd' }
  expect(restored(schema, args)).toEqual(given)
})

test('W8: a required member that may be null is left out instead', () => {
  const schema = { properties: { a: { type: ['string', 'null'] }, b: { type: 'null' } }, required: ['a', 'b'] }
  expect(restored(schema, {})).toEqual({ a: null, b: null })
  expect(restored(schema, { a: 'x' })).toEqual({ a: 'x', b: null })
})

test('W8: a tool without arguments gets a member that is removed from calls', () => {
  for (const schema of [{}, { properties: {} }, { properties: {}, additionalProperties: false }])
    expect(restored(schema, { no_arguments: true })).toEqual({})
})

test('W8: items of tuples are alternatives, in an order that the description tells', () => {
  const tuple = { type: 'array', prefixItems: [{ type: 'number' }, { type: 'string' }] }
  expect(memberSchema(tuple)).toEqual({
    type: 'array',
    description: '(in this order: [{"type":"number"},{"type":"string"}])',
    items: { anyOf: [{ type: 'number' }, { type: 'string' }] },
  })
  expect(memberSchema({ type: 'array', items: [{ type: 'number' }] })).toMatchObject({ items: { type: 'number' } })
})

test('W8: arguments without anything to convert keep their bytes, and long numbers their digits', () => {
  const tool = toolWith({ type: 'object', properties: { 'a-b': {}, c: { type: 'integer' } } })
  const restore = argumentRestorer(tool)
  const same = Json.parse('{ "c": 1.0 }') as Json<Record<string, unknown>>
  expect(restore?.(same)).toBe(same)
  const long = Json.parse('{"a_b":"{\\"x\\":12345678901234567890}","c":98765432109876543210}')
  expect(restore?.(long as Json<Record<string, unknown>>).bytes.toString()).toBe(
    '{"a-b":{"x":12345678901234567890},"c":98765432109876543210}',
  )
})

test('W8: text with too many values or levels stays text', () => {
  const tool = toolWith({ type: 'object', properties: { a: {} } })
  const restore = argumentRestorer(tool)
  for (const a of [`[${'[],'.repeat(200_000)}[]]`, '['.repeat(200) + ']'.repeat(200)])
    expect(restore?.(Json.of<Record<string, unknown>>({ a })).value).toEqual({ a })
})

test('W8: a schema whose references multiply is bounded', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => {
      const next = { $ref: `#/$defs/d${at + 1}` }
      return [
        `d${at}`,
        { type: 'object', properties: { a: next, b: next, c: next, d: next, e: next, f: next, g: next } },
      ]
    }),
  )
  const { schema } = rewriteSchema({ type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs })
  expect(JSON.stringify(schema).length).toBeLessThan(1_000_000)
  const half = { anyOf: [{ properties: { a: {} } }, { properties: { b: {} } }] }
  const product = { type: 'object', allOf: Array.from({ length: 40 }, () => half) }
  expect(Object.keys(rewriteSchema(product).schema.properties as object)).toEqual(['a', 'b'])
})

test('W8: tools have names and descriptions that all APIs accept', () => {
  const tool = { ...toolWith({ type: 'object' }, '1.a::b'), description: `${'word '.repeat(400)}` }
  const portable = portableDefinition({ ...tool, name: portableName(tool.name) }, tool)
  for (const api of apis) expect(refusals(api, portable), api).toEqual([])
  expect([portable.name, portable.description?.length]).toEqual(['_1_a__b', 1_020])
  expect(portableDefinition({ name: 'x', title: 'A title' }, { inputSchema: {} }).description).toBe('A title')
})
