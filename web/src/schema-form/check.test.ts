import { describe, expect, test } from 'vitest'
import { bestVariant, problemsOf } from './check.ts'
import type { Path } from './path.ts'

/** Formats a path as text, such as `server.ports[0]`. */
const pathText = (path: Path): string =>
  path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('')

const told = (value: unknown, schema: unknown, root = {}) =>
  problemsOf(value, schema, root).map(({ path, message }) => `${pathText(path)} ${message}`.trim())

describe('G10: validation of form values', () => {
  test.each([
    [5, { type: 'string' }, 'must be text'],
    ['', { type: 'string', minLength: 1 }, 'must have at least 1 character'],
    ['👍👍', { type: 'string', maxLength: 2 }, undefined],
    ['x', { type: 'number' }, 'must be a number'],
    [1.5, { type: 'integer' }, 'must be a whole number'],
    [3, { type: 'number', minimum: 3, exclusiveMaximum: 3 }, 'must be less than 3'],
    [0.3, { type: 'number', multipleOf: 0.1 }, undefined],
    [0.35, { type: 'number', multipleOf: 0.1 }, 'must be a multiple of 0.1'],
    ['yes', { type: 'boolean' }, 'must be true or false'],
    ['c', { enum: ['a', 'b'] }, 'must be one of the listed values'],
    [{ a: 1 }, { enum: [{ a: 1 }] }, undefined],
    [6, { const: 5 }, 'must be 5'],
    ['2026-02-31', { type: 'string', format: 'date' }, undefined],
    ['1 March', { type: 'string', format: 'date' }, 'must look like 2026-03-01'],
    ['2026-03-01T12:00:00Z', { type: 'string', format: 'date-time' }, undefined],
    ['nowhere', { type: 'string', format: 'uri' }, 'must look like https://example.com/a'],
    ['x', { type: 'string', format: 'constructor' }, undefined],
    [[1, 1], { type: 'array', uniqueItems: true }, 'must not contain duplicates'],
    [[], { type: 'array', minItems: 1 }, 'must have at least 1 item'],
    ['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', { type: 'string', pattern: '^(a+)+$' }, undefined],
  ])('%j against %j', (value, schema, expected) => {
    expect(told(value, schema)).toEqual(expected === undefined ? [] : [expected])
  })

  test('G10: properties named like members of all objects are missing unless they are set', () => {
    const properties = { constructor: { type: 'string' }, valueOf: { type: 'object' }, season: { type: 'integer' } }
    const schema = { type: 'object', properties, required: ['season', 'toString'] }
    expect(told({ season: 1, toString: 1 }, schema)).toEqual([])
    expect(told({}, { ...schema, required: ['constructor', 'toString'] })).toEqual([
      'constructor is required',
      'toString is required',
    ])
  })

  test('reports the path of each problem', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        ports: { type: 'array', items: { type: 'integer' } },
        inner: { type: 'object', properties: { deep: { type: 'boolean' } }, required: ['deep'] },
      },
      required: ['name', 'hidden'],
      additionalProperties: false,
    }
    expect(told({ ports: [1, 'x'], inner: {}, odd: 1 }, schema)).toEqual([
      'name is required',
      'ports[1] must be a number',
      'inner.deep is required',
      'hidden is required',
      'odd is not a known property',
    ])
  })

  test('null is valid if it is the default of an optional property', () => {
    const schema = {
      type: 'object',
      properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } },
    }
    expect(told({ a: null }, schema)).toEqual([])
  })

  test('an unfilled item is missing, not invalid', () => {
    const schema = { type: 'array', items: { type: 'number' } }
    expect(problemsOf([null], schema, {})).toMatchObject([{ path: [0], missing: true }])
    expect(problemsOf(['x'], schema, {})[0]).not.toHaveProperty('missing')
    expect(problemsOf([null], { type: 'array', items: { type: ['number', 'null'] } }, {})).toEqual([])
  })

  test('reports the problems of the best matching variant', () => {
    const file = {
      type: 'object',
      properties: { kind: { const: 'file' }, path: { type: 'string' } },
      required: ['kind', 'path'],
    }
    const hook = {
      type: 'object',
      properties: { kind: { const: 'hook' }, url: { type: 'string' } },
      required: ['kind', 'url'],
    }
    const schema = { oneOf: [{ type: 'string' }, file, hook] }
    expect(told({ kind: 'hook' }, schema)).toEqual(['url is required'])
    expect(told('anything', schema)).toEqual([])
    expect(bestVariant(undefined, [{ label: 'a', schema: {} }], {})).toBe(0)
  })
})
