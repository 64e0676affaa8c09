import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { AmbiguousMember } from '../../wire/check-members.ts'
import { servedResult, servedTaskResult } from './served-uris.ts'

const served = (uri: string) => uri.replace(/^(\w+:(?:\/\/)?)/, '$1s/')
const raw = (text: string) => Json.raw<ResultBody>(Buffer.from(text))
const rewritten = (text: string) => servedResult(raw(text), served).bytes.toString()

test('B2: links, embedded resources and read contents carry served URIs', () => {
  const body = {
    content: [
      { type: 'text', text: 'see "uri" demo://a' },
      { type: 'resource_link', uri: 'demo://a', name: 'A' },
      { type: 'resource', resource: { uri: 'demo://b', text: 'x', _meta: { uri: 'demo://kept' } } },
    ],
    structuredContent: { uri: 'demo://kept', content: [{ type: 'resource_link', uri: 'demo://kept' }] },
    _meta: { uri: 'demo://kept' },
  }
  const { content } = JSON.parse(rewritten(JSON.stringify(body)))
  expect(content[1]).toEqual({ type: 'resource_link', uri: 'demo://s/a', name: 'A' })
  expect(content[2].resource).toEqual({ uri: 'demo://s/b', text: 'x', _meta: { uri: 'demo://kept' } })
  expect(JSON.parse(rewritten(JSON.stringify(body)))).toEqual({ ...body, content })
  expect(JSON.parse(rewritten('{"contents":[{"uri":"demo://a","text":""},{"uri":"demo://b"}]}'))).toEqual({
    contents: [{ uri: 'demo://s/a', text: '' }, { uri: 'demo://s/b' }],
  })
  const message = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const link = { type: 'resource_link', uri: 'demo://a' }
  const changed = { ...link, uri: 'demo://s/a' }
  expect(JSON.parse(rewritten(JSON.stringify(message(link))))).toEqual(message(changed))
  expect(JSON.parse(rewritten(JSON.stringify(message([link, link]))))).toEqual(message([changed, changed]))
})

test('B2: so does the result inside a task notification, and no other nested result', () => {
  const link = '{"content":[{"type":"resource_link","uri":"demo://a"}]}'
  const text = `{"result":${link},"content":[{"type":"resource_link","uri":"demo://b"}]}`
  const both = text.replace('demo://a', 'demo://s/a').replace('demo://b', 'demo://s/b')
  expect(servedTaskResult(raw(text), served).bytes.toString()).toBe(both)
  expect(rewritten(text)).toBe(text.replace('demo://b', 'demo://s/b'))
})

test.each([
  ['{"content":[{"type":"resource\\u005flink","uri":"demo://a"}]}', 'demo://s/a'],
  ['{"content":[{"type":"resource_link","\\u0075ri":"demo://a"}]}', 'demo://s/a'],
  ['{"content":[{"type":"reso\\u0075rce","resource":{"\\u0075ri":"demo://a"}}]}', 'demo://s/a'],
])('V1: a URI is found however the server spells its member: %s', (text, uri) => {
  expect(rewritten(text)).toContain(uri)
})

test.each([
  '{"content":[{"type":"resource_link","uri":"demo://a","\\u0075ri":"demo://b"}]}',
  '{"content":[{"type":"text","type":"resource_link","uri":"demo://a"}]}',
  '{"contents":[{"uri":"demo://a","uri":"demo://b"}]}',
])('V1: a block that programs read differently is refused: %s', (text) => {
  expect(() => rewritten(text)).toThrow(AmbiguousMember)
})

test('B2: every other byte stays as the server wrote it', () => {
  const before = '{ "structuredContent" : {"big":12345678901234567890,"e":1.0}, "content":[ {"uri" :'
  const after = ', "type":"resource_link","x":"\\u00e9\\"" } ],"z":1e400}'
  expect(rewritten(`${before}"demo:\\/\\/a"${after}`)).toBe(`${before}"demo://s/a"${after}`)
})

test('B2: quotes and brackets inside a text do not hide what follows it', () => {
  const text = JSON.stringify('"]}{\\" \\\\"uri":"demo://a" \\')
  const before = `{"content":[{"type":"text","text":${text}},{"type":"resource_link","uri":`
  expect(rewritten(`${before}"demo://a"}]}`)).toBe(`${before}"demo://s/a"}]}`)
})

test('B2: a result without URIs, or with nothing to change, is handed back itself', () => {
  const plain = raw('{"content":[{"type":"text","text":"broken')
  expect(servedResult(plain, served)).toBe(plain)
  const unchanged = raw('{"content":[{"type":"image","uri":"demo://a"}],"contents":[{"uri":5}]}')
  expect(servedResult(unchanged, served)).toBe(unchanged)
})

test('B2: whatever a server sends, nothing but URIs changes and nothing throws', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"uri"',
    '"content"',
    '"contents"',
    '"type"',
    '"resource_link"',
    '"\\',
    '"a:b"',
    ' ',
    '1',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      const text = parts.join('')
      expect(rewritten(text).replaceAll('"a:s/b"', '"a:b"')).toBe(text.replaceAll('"a:s/b"', '"a:b"'))
    }),
    runs(600, 30_000),
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const body = { contents: [{ uri: 'a:b', value }], value }
      expect(JSON.parse(rewritten(JSON.stringify(body)))).toEqual(
        JSON.parse(JSON.stringify({ contents: [{ uri: 'a:s/b', value }], value })),
      )
    }),
  )
})
