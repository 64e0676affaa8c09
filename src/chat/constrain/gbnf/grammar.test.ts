import { describe, expect, test } from 'vitest'
import { CannotExpress } from '../conversion.ts'
import type { AnySchema } from '../schema.ts'
import { object, rows } from './convert.fixture.ts'
import { readGrammar } from './grammar.fixture.ts'
import { toGrammar } from './grammar.ts'

describe('S4: a schema becomes a grammar', () => {
  test.each(rows)('$what', ({ schema, takes, refuses }) => {
    const grammar = readGrammar(toGrammar(schema))
    for (const text of takes) expect(grammar.matches(text), text).toBe(true)
    for (const text of refuses) expect(grammar.matches(text), text).toBe(false)
  })
})

test('S4: members come in the order of the schema, so that a model reasons before it answers', () => {
  const grammar = readGrammar(
    toGrammar(object({ reasoning: { type: 'null' }, answer: { type: 'null' } }, { required: ['answer', 'reasoning'] })),
  )
  expect(grammar.matches('{"reasoning":null,"answer":null}')).toBe(true)
  expect(grammar.matches('{"answer":null,"reasoning":null}')).toBe(false)
})

test('S4: unbounded values get limits', () => {
  const limits = { string: 5, items: 2, members: 1, freeDepth: 1, recursion: 1 }
  const takes = (schema: AnySchema, text: string) => readGrammar(toGrammar(schema, limits)).matches(text)
  expect([takes({ type: 'string' }, '"12345"'), takes({ type: 'string' }, '"123456"')]).toEqual([true, false])
  expect([takes({ type: 'array' }, '[1,2]'), takes({ type: 'array' }, '[1,2,3]')]).toEqual([true, false])
  expect([takes({ type: 'object' }, '{"a":1}'), takes({ type: 'object' }, '{"a":1,"b":1}')]).toEqual([true, false])
  expect([takes(true, '[1]'), takes(true, '[[1]]')]).toEqual([true, false])
  const list = object({ next: { $ref: '#' } })
  expect([takes(list, '{"next":{}}'), takes(list, '{"next":{"next":{}}}')]).toEqual([true, false])
})

test.each<AnySchema>([
  { type: 'array', items: object({ a: { type: 'number', minimum: -1.25 } }, { required: ['a'] }), maxItems: 1024 },
  { type: 'string', minLength: 60_000, maxLength: 65_536 },
  { type: 'string', pattern: '^(a{2,40}b?){0,99}$' },
])('S4: no group is repeated so often that llama.cpp refuses it: %j', (schema) => {
  expect(toGrammar(schema)).not.toMatch(/\)\{(?:\d+,)?\d{3,}\}/)
})

describe('S4: an inexpressible schema is an error with place and keyword', () => {
  test.each<readonly [AnySchema, string, string]>([
    [{ not: {} }, '', 'not'],
    [object({ 'a/b': { type: 'array', contains: {} } }), '/properties/a~1b', 'contains'],
    [{ type: 'array', items: { if: {}, else: {} } }, '/items', 'if'],
    [object({}, { dependentRequired: { a: ['b'] } }), '', 'dependentRequired'],
    [{ type: 'array', items: { type: 'string' }, uniqueItems: true }, '', 'uniqueItems'],
    [{ type: 'string', pattern: '^(?=a)b' }, '', 'pattern'],
    [{ type: 'string', pattern: '(a)\\1' }, '', 'pattern'],
    [{ type: 'string', pattern: '\\bword\\b' }, '', 'pattern'],
    [{ type: 'string', pattern: '^\\p{L}$' }, '', 'pattern'],
    [{ type: 'string', pattern: '^(.*.*)*x$' }, '', 'pattern'],
    [{ type: 'string', pattern: '^(?:a|b?)+$' }, '', 'pattern'],
    [{ type: 'string', pattern: 'a(' }, '', 'pattern'],
    [{ type: 'string', pattern: '[' }, '', 'pattern'],
    [{ type: 'string', pattern: 'a$b' }, '', 'pattern'],
    [{ type: 'string', pattern: '^a$', format: 'date' }, '', 'pattern'],
    [{ type: 'string', pattern: '^a?b?$', minLength: 1 }, '', 'minLength'],
    [{ type: 'string', format: 'regex' }, '', 'format'],
    [{ type: 'integer', multipleOf: 7 }, '', 'multipleOf'],
    [{ type: 'number', multipleOf: 0.1 }, '', 'multipleOf'],
    [{ type: 'number', minimum: 1e300 }, '', 'minimum'],
    [{ oneOf: [{ type: 'integer' }, { type: 'number' }] }, '', 'oneOf'],
    [{ oneOf: [{ type: 'string' }, { type: 'string', pattern: 'x' }] }, '', 'oneOf'],
    [{ allOf: [{ type: 'string', pattern: 'a' }, { pattern: 'b' }] }, '/allOf/1', 'pattern'],
    [object({ a: { $ref: '#/$defs/missing' } }), '/properties/a', '$ref'],
    [object({ a: { $ref: 'https://example.com/schema' } }), '/properties/a', '$ref'],
    [{ $dynamicRef: '#a' }, '', '$dynamicRef'],
    [object({}, { patternProperties: { a: {} }, properties: { b: {} } }), '', 'patternProperties'],
    [{ type: 'object', minProperties: 2 }, '', 'minProperties'],
    [{ type: 'float' }, '', 'type'],
    [false, '', 'the schema'],
    [{ type: 'string', minLength: 5, maxLength: 2 }, '', 'the schema'],
    [{ $ref: '#' }, '', 'the schema'],
    [object({ a: { $ref: '#' } }, { required: ['a'] }), '', 'the schema'],
  ])('%j', (schema, at, keyword) => {
    const thrown = (() => {
      try {
        toGrammar(schema)
      } catch (error) {
        return error
      }
    })()
    expect(thrown).toBeInstanceOf(CannotExpress)
    expect(thrown).toMatchObject({
      at,
      keyword,
      message: expect.stringMatching(/^(The schema|\/\S+) cannot be expressed: .+\.$/),
    })
  })
})

describe('security: the conversion of a hostile schema ends', () => {
  const nested = (depth: number): AnySchema => (depth === 0 ? {} : { type: 'array', items: nested(depth - 1) })
  test.each<readonly [string, AnySchema]>([
    ['one that nests deeply', nested(500)],
    [
      'a circle of references',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b', minimum: 1 }, b: { $ref: '#/$defs/a', maximum: 1 } } },
    ],
    ['a circle of allOf', { allOf: [{ $ref: '#' }] }],
    [
      'a tree that branches without end',
      object({ a: { $ref: '#' }, b: { $ref: '#' }, c: { $ref: '#' } }, { required: ['a', 'b', 'c'] }),
    ],
    ['very many values', { enum: Array.from({ length: 50_000 }, (_, n) => `value ${n}`) }],
  ])('%s', { timeout: 30_000 }, (_what, schema) => {
    expect(() => toGrammar(schema)).toThrow(CannotExpress)
  })

  test('one whose parts are used again and again', { timeout: 30_000 }, () => {
    const definitions = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`d${n}`, { anyOf: [next(n), { type: 'array', items: next(n) }] }]),
    )
    const source = toGrammar({ $ref: '#/$defs/d0', $defs: { ...definitions, d20: { type: 'null' } } })
    expect(source.split('\n').length).toBeLessThan(100)
  })

  test('a pattern that repeats repetitions', { timeout: 30_000 }, () => {
    const grammar = readGrammar(toGrammar({ type: 'string', pattern: '^((((a{1,99}){1,99}){1,99}){1,99}){1,99}$' }))
    expect([grammar.matches('"a"'), grammar.matches('"b"')]).toEqual([true, false])
  })
})

const next = (n: number) => ({ $ref: `#/$defs/d${n + 1}` })
