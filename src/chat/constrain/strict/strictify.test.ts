import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../../tests/fixtures/runs.ts'
import { jsonValue } from '../../../json/parse-json.ts'
import { CannotExpress } from '../conversion.ts'
import { dice } from '../gbnf/dice.fixture.ts'
import { readGrammar } from '../gbnf/grammar.fixture.ts'
import { toGrammar } from '../gbnf/grammar.ts'
import { shapes } from '../gbnf/shapes.fixture.ts'
import type { AnySchema, JsonSchemaObject } from '../schema.ts'
import { strictify } from './strictify.ts'

const object = (properties: object, more: object = {}): JsonSchemaObject => ({ type: 'object', properties, ...more })
const closed = (properties: object): object => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

describe('S4: a schema becomes strict', () => {
  test.each<readonly [string, JsonSchemaObject, object]>([
    [
      'members that may be left out become null',
      object({ a: { type: 'string' }, b: { type: 'integer' } }, { required: ['a'] }),
      closed({ a: { type: 'string' }, b: { type: ['integer', 'null'] } }),
    ],
    [
      'and so do objects and lists',
      object({ a: object({}), b: { type: 'array', items: { type: 'string' } } }),
      closed({
        a: { anyOf: [closed({}), { type: 'null' }] },
        b: { anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] },
      }),
    ],
    [
      'and so do listed values',
      object({ a: { enum: ['x', 'y'] } }),
      closed({ a: { type: ['string', 'null'], enum: ['x', 'y', null] } }),
    ],
    [
      'what takes null already stays',
      object({ a: { type: ['string', 'null'] } }),
      closed({ a: { type: ['string', 'null'] } }),
    ],
    [
      'a constant is a list of one',
      object({ a: { const: 1 } }, { required: ['a'] }),
      closed({ a: { type: 'integer', enum: [1] } }),
    ],
    [
      'oneOf becomes anyOf',
      object({ a: { oneOf: [{ type: 'string' }, { type: 'null' }] } }, { required: ['a'] }),
      closed({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }),
    ],
    [
      'allOf is put together',
      object({ a: { allOf: [{ type: 'integer', minimum: 1 }, { maximum: 9 }] } }, { required: ['a'] }),
      closed({ a: { type: 'integer', minimum: 1, maximum: 9 } }),
    ],
    [
      'titles, defaults and ids go',
      object(
        { a: { type: 'string', title: 'A', default: 'x', examples: ['y'] } },
        { $id: 'x', $schema: 'y', required: ['a'] },
      ),
      closed({ a: { type: 'string' } }),
    ],
    [
      'definitions come along',
      object(
        { a: { $ref: '#/definitions/n' } },
        { required: ['a'], definitions: { n: { type: 'integer' }, unused: {} } },
      ),
      { ...closed({ a: { $ref: '#/$defs/n' } }), $defs: { n: { type: 'integer' } } },
    ],
    [
      'recursion stays',
      object({ next: { $ref: '#' } }),
      closed({ next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }),
    ],
    [
      'types that differ much become a choice',
      object({ a: { type: ['string', 'array'], items: { type: 'string' } } }, { required: ['a'] }),
      closed({ a: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] } }),
    ],
  ])('%s', (_what, schema, expected) => {
    expect(strictify(schema).schema).toEqual(expected)
  })

  test('unsupported keywords move to the description and are listed', () => {
    const { schema, dropped } = strictify(
      object(
        { a: { type: 'string', minLength: 3, description: 'A name.' }, b: { type: 'string', format: 'uri' } },
        { required: ['a', 'b'], not: { required: ['c'] } },
      ),
    )
    expect(dropped).toEqual([
      { at: '', keyword: 'not' },
      { at: '/properties/a', keyword: 'minLength' },
      { at: '/properties/b', keyword: 'format' },
    ])
    expect(schema.description).toBe('It must also satisfy {"not":{"required":["c"]}}.')
    expect(schema).toHaveProperty('properties.a.description', 'A name. It must also satisfy {"minLength":3}.')
  })

  test.each<readonly [JsonSchemaObject, string, string]>([
    [object({ a: {} }), '/properties/a', 'type'],
    [object({ a: true as unknown as object }), '/properties/a', 'the schema'],
    [object({ a: { type: 'object' } }), '/properties/a', 'additionalProperties'],
    [
      object({ a: { type: 'object', additionalProperties: { type: 'string' } } }),
      '/properties/a',
      'additionalProperties',
    ],
    [object({}, { additionalProperties: true }), '', 'additionalProperties'],
    [object({}, { patternProperties: { x: {} } }), '', 'patternProperties'],
    [object({ a: { type: 'array' } }), '/properties/a', 'items'],
    [object({ a: { type: 'array', prefixItems: [{ type: 'string' }] } }), '/properties/a', 'items'],
    [object({}, { required: ['x'] }), '', 'required'],
    [object({ a: { type: 'dict' } }), '/properties/a', 'type'],
    [{ type: 'array', items: { type: 'string' } }, '', 'the schema'],
    [{ anyOf: [object({}), object({})] }, '', 'the schema'],
    [object({ a: { enum: Array.from({ length: 1001 }, (_, n) => n) } }), '', 'the schema'],
    [object({ a: { enum: ['x'.repeat(130_000)] } }), '', 'the schema'],
    [
      Array.from({ length: 12 }).reduce<JsonSchemaObject>((inner) => object({ a: inner }), object({})),
      '',
      'the schema',
    ],
    [object(Object.fromEntries(Array.from({ length: 5001 }, (_, n) => [`p${n}`, { type: 'null' }]))), '', 'the schema'],
    [
      Array.from({ length: 2000 }).reduce<JsonSchemaObject>((inner) => ({ anyOf: [inner] }), object({})),
      '',
      'the schema',
    ],
  ])('%# is refused', (schema, at, keyword) => {
    let thrown: unknown
    try {
      strictify(schema)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(CannotExpress)
    expect(thrown).toMatchObject({ at, keyword })
  })
})

describe('S4: nulls of a strict answer are removed', () => {
  const { restore } = strictify(
    object(
      {
        a: { type: 'string' },
        b: { type: ['string', 'null'] },
        list: { type: 'array', items: object({ x: { type: 'integer' } }) },
        either: {
          anyOf: [
            object({ kind: { const: 'one' }, p: { type: 'string' } }, { required: ['kind'] }),
            object({ kind: { const: 'two' } }, { required: ['kind'] }),
          ],
        },
        self: { $ref: '#' },
      },
      { required: ['list'] },
    ),
  )

  test.each<readonly [unknown, unknown]>([
    [
      { a: null, b: null, list: [{ x: null }, { x: 1 }], either: null, self: null },
      { b: null, list: [{}, { x: 1 }] },
    ],
    [
      { a: 'x', b: 'y', list: [], either: { kind: 'one', p: null }, self: null },
      { a: 'x', b: 'y', list: [], either: { kind: 'one' } },
    ],
    [
      { list: [], self: { a: null, list: [], either: { kind: 'two' } } },
      { list: [], self: { list: [], either: { kind: 'two' } } },
    ],
    [
      { unknown: null, list: 5 },
      { unknown: null, list: 5 },
    ],
    ['no object', 'no object'],
  ])('%j', (answer, restored) => {
    expect(JSON.stringify(restore(answer))).toBe(JSON.stringify(restored))
  })

  test('a restored strict value matches the original schema', () => {
    const compile = (schema: AnySchema) =>
      new Ajv2020({ strict: false, logger: false, meta: false, validateSchema: false }).compile(schema)
    const limits = { string: 40, items: 3, members: 2, freeDepth: 1, recursion: 2 }
    let tried = 0
    const some = runs(30, 5_000)
    fc.assert(
      fc.property(shapes, dice, ({ schema }, roll) => {
        const whole = object(
          { value: schema as JsonSchemaObject, other: schema as JsonSchemaObject },
          { required: ['value'] },
        )
        let strict: ReturnType<typeof strictify>
        try {
          strict = strictify(whole)
        } catch (error) {
          expect(error).toBeInstanceOf(CannotExpress)
          return
        }
        if (strict.dropped.length > 0) return
        tried++
        const text = readGrammar(toGrammar(strict.schema, limits)).sample(roll)
        const answer: unknown = jsonValue(text)
        expect(compile(strict.schema)(answer), text).toBe(true)
        expect(compile(whole)(strict.restore(answer)), `${text} for ${JSON.stringify(whole)}`).toBe(true)
      }),
      some,
    )
    expect(tried).toBeGreaterThan(some.numRuns / 8)
  })
})
