import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../../tests/fixtures/cpu-time.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { CannotExpress, createWorkBudget, isInexpressible } from './conversion.ts'
import { bestGrammar, findBestGrammar } from './gbnf/grammar.ts'
import { sanitizeSchema } from './sanitize-schema.ts'
import type { JsonSchemaObject } from './schema.ts'
import { callSchema } from './stage-schemas.ts'
import { strictify } from './strict/strictify.ts'

test('S4: a sound schema stays as it is', () => {
  const schema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/b' }, c: { type: ['string', 'null'], pattern: '^x$' } },
    required: ['a'],
    $defs: { b: { anyOf: [{ type: 'integer', minimum: 1 }, { enum: ['x'] }] } },
    'x-own': { kept: true },
  }
  expect(sanitizeSchema(schema)).toEqual(schema)
})

test.each<readonly [string, object, object | undefined]>([
  ['a draft', { $schema: 'http://json-schema.org/draft-07/schema#' }, { type: 'object', properties: {} }],
  ['none', {}, { type: 'object', properties: {} }],
  ['a type among others', { type: ['object', 'null'] }, { type: 'object', properties: {} }],
  ['a type that there is not', { type: 'object', properties: { a: { type: 'any' } } }, { a: {} }],
  ['properties that are none', { type: 'object', properties: ['a'] }, {}],
  ['a property that is none', { type: 'object', properties: { a: 7 } }, {}],
  ['a reference to elsewhere', { properties: { a: { $ref: 'https://example.com/x' } } }, { a: {} }],
  ['an empty choice', { properties: { a: { anyOf: [] } } }, { a: {} }],
  ['a list', { type: 'array' }, undefined],
  ['a text', { type: 'string' }, undefined],
])('S4: of %s, invalid keywords are left out', (_what, schema, properties) => {
  const sound = sanitizeSchema(schema as Record<string, unknown>)
  if (properties === undefined) expect(sound).toBeUndefined()
  else expect(sound).toEqual('type' in properties ? properties : { type: 'object', properties })
})

test('S4: no form of constraint fails for any input schema', () => {
  const keyword = fc.constantFrom(
    'type',
    'properties',
    'required',
    'enum',
    'anyOf',
    'items',
    '$ref',
    'not',
    '$defs',
    'x',
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('object', 'string', '#/x', '#', 'any', 7, null, true, -1),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(keyword, tie('value'), { maxKeys: 4 }),
    ),
  }))
  fc.assert(
    fc.property(fc.dictionary(keyword, value as fc.Arbitrary<unknown>, { maxKeys: 5 }), (schema) => {
      const sound = sanitizeSchema(schema)
      if (!sound) return
      const calls = callSchema([{ name: 'odd', parameters: sound }])
      for (const express of [() => strictify(sound), () => strictify(calls), () => bestGrammar(calls)]) {
        try {
          express()
        } catch (error) {
          // To say that it cannot be expressed is an answer: a weaker form is tried then.
          expect(error).toBeInstanceOf(CannotExpress)
        }
      }
    }),
    runs(20, 10_000),
  )
})

const many = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index))
const named = (length: number, make: (index: number) => object) =>
  Object.fromEntries(many(length, (index) => [`m${index}`, make(index)]))
/** The same place by another spelling. */
const spelt = (place: string, index: number): string =>
  `#/$defs/${place}/${[...'properties'].map((c, at) => ((index >> at) & 1 ? `%${c.charCodeAt(0).toString(16)}` : c)).join('')}`

/** A tenth of the usual steps of a conversion, and of the time in which they are taken. */
const few = { steps: 200_000, maxMs: 1_500 }
const usual = { steps: undefined, maxMs: 4_000 }

test.each<readonly [string, JsonSchemaObject, typeof few | typeof usual]>([
  [
    'parts that multiply at every step',
    {
      properties: { p: { $ref: '#/$defs/m0' } },
      $defs: {
        ...named(9, (index) => ({ allOf: many(5, () => ({ $ref: `#/$defs/m${index + 1}` })) })),
        m9: { type: 'null' },
      },
    },
    usual,
  ],
  [
    'references by name that lead nowhere',
    { properties: named(2_000, () => ({ $ref: '#nobody' })), $defs: named(2_000, () => ({})) },
    usual,
  ],
  [
    'many spellings of one place',
    {
      properties: named(300, (index) => ({ $ref: spelt('high', index) })),
      $defs: {
        high: { properties: named(300, (index) => ({ $ref: spelt('low', index) })) },
        low: { properties: {} },
      },
    },
    few,
  ],
  [
    'branches that are compared member by member',
    {
      properties: { p: { oneOf: many(256, () => ({ $ref: '#/$defs/wide' })) } },
      $defs: { wide: { properties: named(1_000, () => ({})), required: many(1_000, (index) => `m${index}`) } },
    },
    few,
  ],
  ['thousands of members that may be left out', { properties: named(5_000, () => ({ type: 'null' })) }, usual],
])('security: %s are processed quickly in every form of constraint', (_what, given, { steps, maxMs }) => {
  const makers = [
    sanitizeSchema,
    (schema: JsonSchemaObject) => findBestGrammar(schema, createWorkBudget(steps)),
    (schema: JsonSchemaObject) => strictify(schema, createWorkBudget(steps)),
  ]
  return expectCpuBelow(maxMs, () => {
    const schema = structuredClone({ type: 'object', ...given })
    for (const make of makers) {
      try {
        make(schema)
      } catch (error) {
        expect(isInexpressible(error)).toBe(true)
      }
    }
  })
})
