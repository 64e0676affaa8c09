import { expect, test } from 'vitest'
import { ExactNumber, exactNumber, indentJson, parseExactly } from './exact-json.ts'

const long = ['9007199254740993', '12345678901234567890', '-0.12345678901234567890123', '1e400', '1E-400']

test.each(long)('G10: the number %s keeps its digits', (source) => {
  const text = `{"a":[${source}],"b":"${source}"}`
  const parsed = parseExactly(text)
  expect(parsed).toEqual({ a: [new ExactNumber(source)], b: source })
  expect(JSON.stringify(parsed)).toBe(text)
  expect(indentJson(text)).toBe(`{\n  "a": [\n    ${source}\n  ],\n  "b": "${source}"\n}`)
})

test.each([
  '0',
  '-0.0',
  '12',
  '1.50',
  '0.1',
  '1e3',
  '1e21',
  '9007199254740992',
  '100000000000000000000',
  '0.30000000000000004',
  '5e-324',
])('G10: the number %s is a plain number', (source) => {
  expect(exactNumber(source)).toBe(Number(source))
})

test('G10: JSON is indented as by JSON.stringify, other text is unchanged', () => {
  const value = { a: 1, 'b"\\': [], c: {}, d: [{}, [1, [true, null]], 'x, {y}: "z"\n'], é: '\u0000' }
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 7)]) {
    expect(indentJson(text)).toBe(JSON.stringify(value, null, 2))
  }
  expect(indentJson('["\\u00e9"]')).toBe('[\n  "é"\n]')
  expect(indentJson('{ not JSON')).toBe('{ not JSON')
  expect(indentJson('12')).toBe('12')
})
