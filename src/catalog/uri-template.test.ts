import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { templateMatcher } from './uris.ts'

const matches = (template: string, uri: string) => templateMatcher(template)(uri)

test('B2: variables stand for what RFC 6570 can put there', () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ['demo://x', 'demo://x', true],
    ['demo://x', 'demo://xy', false],
    ['demo://resource/{id}', 'demo://resource/1', true],
    ['demo://resource/{id}', 'demo://resource/', false],
    ['demo://resource/{id}', 'demo://resource/1/2', false],
    ['demo://{type}/{id}', 'demo://text/7', true],
    ['demo://{a}-{b}', 'demo://x-y-z', true],
    ['file:///{+path}', 'file:///a/b/c', true],
    ['x://{+a}/{b}', 'x://1/2/3', true],
    ['x://{+a}.txt', 'x://a.txt/b.txt', true],
    ['x://{+a}.txt', 'x://a.txt/b', false],
    ['x://a{/rest}', 'x://a', true],
    ['x://a{/rest*}', 'x://a/b/c', true],
    ['x://a{/rest}', 'x://ab', false],
    ['x://s{?q,page}', 'x://s', true],
    ['x://s{?q,page}', 'x://s?q=1&page=2', true],
    ['x://s{?q}{&more}', 'x://s?q=1&more=2', true],
    ['x://s{#part}', 'x://s#end', true],
    ['x://s{.ext}', 'x://s.json', true],
    ['x://s{;v}', 'x://s;v=1', true],
    ['x://{unclosed', 'x://{unclosed', true],
    ['x://{id}', 'x://{id}', true],
    ['', '', true],
  ]
  for (const [template, uri, expected] of table)
    expect([template, uri, matches(template, uri)]).toEqual([template, uri, expected])
})

test('B2: the matcher agrees with a backtracking one on short texts', () => {
  const part = fc.constantFrom('a', 'b', '/', 'a/', '{v}', '{+v}', '{/v}', '{?v}', '{.v}')
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '?', '.', '#'), maxLength: 8 })
  const patterns = new Map([
    ['{v}', '[^/?#]+'],
    ['{+v}', '[\\s\\S]+'],
    ['{/v}', '(?:/[^?#]*)?'],
    ['{?v}', '(?:\\?[^#]*)?'],
    ['{.v}', '(?:\\.[^/?#]*)?'],
  ])
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), text, (parts, uri) => {
      const expected = new RegExp(`^${parts.map((one) => patterns.get(one) ?? one).join('')}$`).test(uri)
      expect(matches(parts.join(''), uri)).toBe(expected)
    }),
    runs(400, 20_000),
  )
})

test('a template made to be slow is not, and an endless URI is not matched', () => {
  const template = templateMatcher(`x://${'{+a}a'.repeat(50)}b`)
  expect(template(`x://${'a'.repeat(10_000)}`)).toBe(false)
  expect(templateMatcher('x://{+a}')(`x://${'a'.repeat(1_000_000)}`)).toBe(false)
})
