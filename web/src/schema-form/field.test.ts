import { describe, expect, test } from 'vitest'
import { type Field, fieldOf } from './field.ts'
import { resolveSchema } from './schema.ts'

const kind = (schema: unknown, required = true) => fieldOf(schema, {}, required).kind
const labels = (field: Field) => (field.kind === 'variants' ? field.variants.map(({ label }) => label) : field.kind)

describe('G10: form fields of schemas', () => {
  test.each([
    [{ type: 'string' }, 'text'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'boolean' }, 'boolean'],
    [{ type: 'null' }, 'null'],
    [{ enum: ['a', 'b'] }, 'choice'],
    [{ const: 5 }, 'fixed'],
    [{ type: 'object' }, 'object'],
    [{ properties: { a: {} } }, 'object'],
    [{ items: { type: 'string' } }, 'list'],
    [{ minLength: 1 }, 'text'],
    [{ maximum: 5 }, 'number'],
    [{}, 'any'],
    [true, 'any'],
    ['nonsense', 'any'],
  ])('%j is %s', (schema, expected) => {
    expect(kind(schema)).toBe(expected)
  })

  test('properties keep their order and whether they are required', () => {
    const schema = { type: 'object', properties: { b: {}, a: {} }, required: ['a'] }
    expect(fieldOf(schema, {})).toMatchObject({
      properties: [
        { name: 'b', required: false },
        { name: 'a', required: true },
      ],
    })
  })

  test('constants with titles are a choice', () => {
    const schema = { oneOf: [{ const: 'asc', title: 'Ascending' }, { const: 'desc' }] }
    expect(fieldOf(schema, {})).toMatchObject({
      kind: 'choice',
      values: ['asc', 'desc'],
      titles: ['Ascending', undefined],
    })
  })

  test('V11: the values of an elicitation are shown with their names in enumNames', () => {
    const schema = { enum: [null, 'red', 'green'], enumNames: ['None', 'Rot', 5] }
    expect(fieldOf(schema, {}, false)).toMatchObject({ values: ['red', 'green'], titles: ['Rot', undefined] })
  })

  test('null is offered only for required values', () => {
    const nullable = { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, description: 'where' }
    expect(fieldOf(nullable, {}, false)).toMatchObject({ kind: 'text', schema: { description: 'where' } })
    expect(labels(fieldOf(nullable, {}, true))).toEqual(['string', 'null'])
    expect(kind({ type: ['integer', 'null'] }, false)).toBe('number')
  })

  test('variants are labelled by what distinguishes them', () => {
    const file = { properties: { kind: { const: 'file' }, path: {} }, required: ['kind', 'path'] }
    const schema = { oneOf: [{ title: 'Nothing', type: 'null' }, file, { required: ['url'] }, { type: 'array' }, {}] }
    expect(labels(fieldOf(schema, {}))).toEqual(['Nothing', 'kind: file', 'with url', 'list', 'option 5'])
  })

  test('keywords of a union apply to each variant', () => {
    const schema = { type: 'object', properties: { a: {}, b: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }
    const field = fieldOf(schema, {})
    expect(field).toMatchObject({
      kind: 'variants',
      variants: [{ schema: { type: 'object', properties: { a: {}, b: {} }, required: ['a'] } }, {}],
    })
  })

  test('additional properties are offered only if the schema mentions them', () => {
    const additional = (additionalProperties: unknown) =>
      fieldOf({ type: 'object', ...(additionalProperties !== undefined && { additionalProperties }) }, {})
    expect(additional({ type: 'string' })).toMatchObject({ additional: { type: 'string' } })
    expect(additional(true)).toMatchObject({ additional: true })
    expect(additional(undefined)).toMatchObject({ additional: undefined })
    expect(additional(false)).toMatchObject({ additional: undefined })
  })
})

describe('G10: references', () => {
  test('are resolved within the document and keep their siblings', () => {
    const root = { $defs: { 'a/b': { type: 'string', description: 'theirs' } } }
    expect(resolveSchema({ $ref: '#/$defs/a~1b', description: 'mine' }, root)).toEqual({
      type: 'string',
      description: 'mine',
    })
  })

  test('that are dangling, external or circular accept everything', () => {
    const root = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }
    for (const $ref of ['#/$defs/a', '#/$defs/none', '#/toString', 'https://example.com/s.json']) {
      expect(fieldOf({ $ref }, root).kind).toBe('any')
    }
  })

  test('allOf merges properties and required names', () => {
    const root = { $defs: { base: { properties: { id: { type: 'string' } }, required: ['id'] } } }
    const schema = { allOf: [{ $ref: '#/$defs/base' }, { properties: { size: {} }, required: ['size'] }] }
    expect(resolveSchema(schema, root)).toEqual({
      properties: { id: { type: 'string' }, size: {} },
      required: ['id', 'size'],
    })
  })
})
