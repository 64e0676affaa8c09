import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { applicators, assertions } from '../../core/schema-keywords.ts'
import { isCompilable } from './tool-list.ts'

const compiles = (schema: object): boolean => {
  try {
    new AjvJsonSchemaValidator().getValidator(schema)
    return true
  } catch {
    return false
  }
}

const about = (inner: unknown) => ({ type: 'object', properties: { a: inner }, $defs: { known: { type: 'string' } } })

test.each([
  { type: 'strng' },
  { $ref: '#/$defs/unknown' },
  { $ref: 'https://example.com/schema.json' },
  { pattern: '(' },
  { patternProperties: { '[': { type: 'string' } } },
  { minLength: '1' },
  { minimum: 1, exclusiveMinimum: true },
  { enum: [] },
  { nullable: true },
  { id: 'a' },
])('S1: %j, which clients cannot compile, is detected', (inner) => {
  expect(compiles(about(inner))).toBe(false)
  expect(isCompilable(about(inner))).toBe(false)
})

test.each([
  { $ref: '#/$defs/known' },
  { type: ['string', 'null'], format: 'email', title: 'A', 'x-own': { type: 'strng' } },
  { anyOf: [{ type: 'integer', minimum: 0 }, { items: { enum: ['a'] }, uniqueItems: true }, false] },
  { patternProperties: { '^x-': true }, additionalProperties: false, required: ['b'] },
])('B2: %j stays', (inner) => {
  expect(compiles(about(inner))).toBe(true)
  expect(isCompilable(about(inner))).toBe(true)
})

test('B2: a schema may have an $id, its parts may not: it would change the base of references', () => {
  const named = { $id: 'https://example.com/a', ...about({ $ref: '#/$defs/known' }) }
  expect([compiles(named), isCompilable(named)]).toEqual([true, true])
  const inside = about({ $id: 'https://example.com/b', properties: { b: { $ref: '#/$defs/known' } } })
  expect([compiles(inside), isCompilable(inside)]).toEqual([false, false])
})

test('S1: clients can compile every accepted schema', () => {
  const word = fc.constantFrom('string', 'object', '#', '#/$defs/known', '#/$defs/no', '(', '^a', 'a')
  const keyword = fc.constantFrom(
    ...Object.keys(applicators),
    ...Object.keys(assertions).filter((one) => one !== 'format'),
  )
  const { value } = fc.letrec((again) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(word, fc.constantFrom(null, true, false, 0, 1, -1, 0.5)),
      fc.array(again('value'), { maxLength: 2 }),
      fc.dictionary(fc.oneof(keyword, word), again('value'), { maxKeys: 3 }),
    ),
  }))
  fc.assert(
    fc.property(value, (inner) => {
      if (isCompilable(about(inner))) expect(compiles(about(inner)), JSON.stringify(inner)).toBe(true)
    }),
    runs(60, 3_000),
  )
})
