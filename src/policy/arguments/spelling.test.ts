import { describe, expect, test } from 'vitest'
import { misspeltArgument } from './validate.ts'

const schema = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    kind: { type: 'string' },
    options: { $ref: '#/$defs/options' },
    edits: { type: 'array', items: { type: 'object', properties: { text: { type: 'string' } } } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
  },
  $defs: {
    options: { type: 'object', properties: { force: { type: 'boolean' }, inner: { $ref: '#/$defs/options' } } },
  },
}

describe('V1: an argument that a server may read as another one', () => {
  test.each<[object, string]>([
    [{ path: 'a', Path: 'b' }, '"Path"'],
    [{ PATH: 'b' }, '"PATH"'],
    [{ path: 'a', ' path': 'b' }, '" path"'],
    [{ path: 'a', ｐath: 'b' }, 'may be read as "path"'],
    [{ 'pa\u200bth': 'b' }, 'may be read as "path"'],
    [{ '\u212aind': 'b' }, 'may be read as "kind"'],
    [{ options: { force: false, Force: true } }, '"options.Force"'],
    [{ options: { inner: { inner: { FORCE: true } } } }, '"options.inner.inner.FORCE"'],
    [{ edits: [{ text: 'a' }, { text: 'b', Text: 'c' }] }, '"edits[1].Text"'],
  ])('%j is refused', (args, told) => {
    expect(misspeltArgument(schema, args as Record<string, unknown>)).toContain(told)
  })

  test.each<object>([
    { path: 'a', kind: 'b' },
    { path: 'a', unknown: 1, Unknown: 2 },
    { labels: { a: '1', A: '2' } },
    { options: { force: true, inner: { force: false } }, edits: [{ text: 'Text' }] },
  ])('%j is not', (args) => {
    expect(misspeltArgument(schema, args as Record<string, unknown>)).toBeUndefined()
  })

  test('names that are both declared are two arguments', () => {
    const both = { properties: { name: {}, Name: {} }, anyOf: [{ properties: { NAME: {} } }] }
    expect(misspeltArgument(both, { name: 1, Name: 2, NAME: 3 })).toBeUndefined()
    expect(misspeltArgument(both, { naMe: 1 })).toBeDefined()
  })

  test('security: a schema in circles and many arguments cost a bounded number of steps', () => {
    const branches = Array.from({ length: 500 }, (_, index) => ({ properties: { [`p${index}`]: { $ref: '#' } } }))
    const circular = { anyOf: branches }
    const wide = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`p${index}`, { p1: {}, p2: {} }]))
    expect(misspeltArgument(circular, wide)).toContain('too complex')
  })
})
