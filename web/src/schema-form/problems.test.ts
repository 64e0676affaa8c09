import { describe, expect, test } from 'vitest'
import { bestVariant, gatewayProblems, missingValues } from './problems.ts'

const missing = (value: unknown, schema: unknown, root = {}) =>
  missingValues(value, schema, root).map(({ place, message }) => `${place} ${message}`)

describe('G10: missing values', () => {
  test('properties named like members of all objects are missing unless they are set', () => {
    const properties = { constructor: { type: 'string' }, valueOf: { type: 'object' }, toString: { type: 'string' } }
    const schema = { type: 'object', properties, required: ['constructor', 'toString'] }
    expect(missing({ constructor: 'a', toString: 'b' }, schema)).toEqual([])
    expect(missing({}, schema)).toEqual(['constructor is required', 'toString is required'])
  })

  test('missingValues reports the path of each value; everything else is left to the gateway', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        ports: { type: 'array', items: { type: 'integer' } },
        inner: { type: 'object', properties: { deep: { type: 'boolean' } }, required: ['deep'] },
      },
      required: ['name'],
      additionalProperties: false,
    }
    expect(missing({ ports: [1, 'x', null], inner: {}, odd: 1 }, schema)).toEqual([
      'name is required',
      'ports[2] is required',
      'inner.deep is required',
    ])
  })

  test('null is a value if it is the default of an optional property, or an item may be null', () => {
    const schema = {
      type: 'object',
      properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } },
    }
    expect(missing({ a: null }, schema)).toEqual([])
    expect(missing([null], { type: 'array', items: { type: 'number' } })).toEqual(['[0] is required'])
    expect(missing([null], { type: 'array', items: { type: ['number', 'null'] } })).toEqual([])
  })

  test('missing values are those of the best matching variant', () => {
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
    expect(missing({ kind: 'hook' }, schema)).toEqual(['url is required'])
    expect(missing('anything', schema)).toEqual([])
    expect(bestVariant(undefined, [{ label: 'a', schema: {} }], {})).toBe(0)
  })
})

test('G10: the problems that the gateway names are shown at their fields', () => {
  const message =
    'Invalid arguments for github.create_issue: "count" must be at most 100; "target.url" is missing; "labels[0]" must be a string, not null; the whole input must have at least 2 fields; and 3 more.'
  expect(gatewayProblems(message)).toEqual([
    { place: 'count', message: 'must be at most 100' },
    { place: 'target.url', message: 'is missing' },
    { place: 'labels[0]', message: 'must be a string, not null' },
  ])
  expect(gatewayProblems('The server failed: "a" must be b.')).toEqual([])
})
