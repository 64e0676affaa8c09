import { expect, test } from 'vitest'
import { flatRoot } from './sanitize-schema.ts'

test('S4: a root without alternatives has the properties of those that it refers to and of those within others', () => {
  const $defs = {
    byId: { properties: { id: { type: 'integer' } }, anyOf: [{ $ref: '#/$defs/byId' }, { $ref: '#' }] },
    byName: { allOf: [{ properties: { name: { type: 'string' } } }, true] },
  }
  const schema = { type: 'object', oneOf: [{ $ref: '#/$defs/byId' }, { $ref: '#/$defs/byName' }], $defs }
  expect(flatRoot(schema)).toEqual({
    type: 'object',
    properties: { id: { type: 'integer' }, name: { type: 'string' } },
    $defs,
  })
})

test('S4: a root without alternatives stays the same', () => {
  const schema = { type: 'object', properties: { a: { anyOf: [{ type: 'string' }] } } }
  expect(flatRoot(schema)).toBe(schema)
})
