import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describeConstraints, describeType } from './describe.ts'
import { initialValue } from './initial-value.ts'
import { parseJson, parseNumber, parseText, toInputText } from './parse-input.ts'
import { withItem, withMember, withoutItem } from './path.ts'
import { missingValues } from './problems.ts'
import type { Schema } from './schema.ts'

describe('G10: initial values', () => {
  test('contain defaults and required values only', () => {
    const schema = {
      type: 'object',
      properties: {
        query: { type: 'string' },
        limit: { type: 'integer', default: 10 },
        exact: { type: 'boolean' },
        sure: { type: 'boolean' },
        kind: { const: 'search' },
        cursor: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
        where: { type: 'object', properties: { path: { type: 'string', default: '/' } } },
        size: { type: 'object', properties: { width: { type: 'number', default: 1 } } },
        tags: { type: 'array', items: { enum: ['only'] }, minItems: 2 },
      },
      required: ['query', 'sure', 'kind', 'where', 'tags'],
    }
    expect(initialValue(schema, schema)).toEqual({
      limit: 10,
      sure: false,
      kind: 'search',
      where: { path: '/' },
      tags: ['only', 'only'],
    })
  })

  test('a recursive schema terminates', () => {
    const root = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] }
    expect(JSON.stringify(initialValue(root, root)).length).toBeLessThan(1000)
  })

  test('a union starts with its first variant', () => {
    const schema = {
      oneOf: [{ type: 'object', properties: { kind: { const: 'a' } }, required: ['kind'] }, { type: 'null' }],
    }
    expect(initialValue(schema, schema)).toEqual({ kind: 'a' })
  })
})

describe('G10: changing a value', () => {
  test('keeps the order of members and removes undefined ones', () => {
    const before = { a: 1, b: 2 }
    expect(JSON.stringify(withMember(before, 'a', 3))).toBe('{"a":3,"b":2}')
    expect(withMember(before, 'a', undefined)).toEqual({ b: 2 })
    expect(withMember(undefined, 'c', 1)).toEqual({ c: 1 })
    expect(before).toEqual({ a: 1, b: 2 })
  })

  test('members can have any name', () => {
    expect(Object.keys(withMember({}, '__proto__', 1))).toEqual(['__proto__'])
  })

  test('lists have no holes', () => {
    expect(withItem(['a', 'b'], 1, undefined)).toEqual(['a', null])
    expect(withoutItem(['a', 'b'], 0)).toEqual(['b'])
  })
})

describe('G10: parsing input', () => {
  test('numbers are parsed, other text is kept for validation', () => {
    expect([' 12 ', '-0.5', '1e3', '', '12x', '0x10', 'Infinity'].map(parseNumber)).toEqual([
      12,
      -0.5,
      1000,
      undefined,
      '12x',
      '0x10',
      'Infinity',
    ])
    expect(['+5', '.5', '-.5', '5.', '007', '-007.50', '5.e1'].map(parseNumber)).toEqual([5, 0.5, -0.5, 5, 7, -7.5, 50])
  })

  test('long numbers keep their digits, in fields and as JSON', () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', maximum: 5e30 }, any: {} } }
    for (const digits of ['9007199254740993', '12345678901234567890']) {
      const value = { n: parseNumber(digits), any: parseJson(`[${digits}]`) }
      expect(JSON.stringify(value)).toBe(`{"n":${digits},"any":{"value":[${digits}]}}`)
      expect(toInputText(value.n)).toBe(digits)
      expect(missingValues(value, schema, schema)).toEqual([])
    }
  })

  test('an empty field has no value', () => {
    expect(parseText('')).toBeUndefined()
    expect(toInputText(undefined)).toBe('')
    expect(toInputText(5)).toBe('5')
  })

  test('JSON is parsed or an error is returned', () => {
    expect(parseJson('{"a":[1]}')).toEqual({ value: { a: [1] } })
    expect(parseJson('  ')).toEqual({ value: undefined })
    expect(parseJson('{a}')).toHaveProperty('error')
  })
})

describe('G10: descriptions of schemas', () => {
  test.each([
    [{ type: 'string' }, 'text'],
    [{ type: 'array', items: { type: 'integer' } }, 'list of whole number'],
    [{ type: ['string', 'null'] }, 'text or null'],
    [{ enum: ['a', 1] }, '"a" | 1'],
    [{ const: null }, 'null'],
    [{}, 'anything'],
  ])('%j is %s', (schema, expected) => {
    expect(describeType(schema, {})).toBe(expected)
  })

  test('constraints are short', () => {
    const schema = { minLength: 1, maxLength: 64, format: 'email', default: 'a@b' }
    expect(describeConstraints(schema, {})).toEqual(['email', '1–64 characters', 'default "a@b"'])
    expect(describeConstraints({ minimum: 0 }, {})).toEqual(['0 or more'])
  })
})

test('G10: a union of itself terminates', () => {
  const root = { anyOf: [{ $ref: '#' }, { $ref: '#' }] }
  expect(missingValues({ a: 1 }, root, root)).toEqual([])
  expect(initialValue(root, root)).toBeUndefined()
  expect(describeType(root, root)).toBe('anything')
})

test('G10: the form neither fails nor hangs with arbitrary schemas', () => {
  const keyword = fc.constantFrom(
    'type',
    'properties',
    'items',
    'anyOf',
    'allOf',
    'enum',
    '$ref',
    'required',
    'default',
    'minItems',
  )
  const word = fc.constantFrom<unknown>('object', 'array', 'string', '#', '#/properties/items', 'items', 3, null, true)
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      word,
      fc.array(tie('schema'), { maxLength: 3 }),
      fc.dictionary(keyword, tie('schema'), { maxKeys: 4 }),
    ),
  }))
  fc.assert(
    fc.property(schema, fc.jsonValue(), (given, value) => {
      const root = (typeof given === 'object' && !Array.isArray(given) ? given : {}) as Schema
      initialValue(given, root)
      missingValues(value, given, root)
      describeType(given, root)
      describeConstraints(given, root)
    }),
    { numRuns: 2000 },
  )
})
