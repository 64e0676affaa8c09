import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { matches } from './wildcard.ts'

test('G6: a star stands for any run of characters, also none', () => {
  expect(matches('*', '')).toBe(true)
  expect(matches('read_*', 'read_file')).toBe(true)
  expect(matches('read_*', 'read_')).toBe(true)
  expect(matches('*_file', 'read_file')).toBe(true)
  expect(matches('r*d*e', 'read_file')).toBe(true)
  expect(matches('a*a', 'a')).toBe(false)
  expect(matches('read', 'read_file')).toBe(false)
  expect(matches('ab*bc', 'abc')).toBe(false)
  expect(matches('READ', 'read')).toBe(false)
})

test('G6: agrees with a regular expression of the same meaning', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 12 })
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })
  fc.assert(
    fc.property(word, text, (pattern, text) => {
      expect(matches(pattern, text)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(text))
    }),
    runs(400, 20_000),
  )
})

test('other signs of a pattern language are plain characters', () => {
  expect(matches('a.c', 'abc')).toBe(false)
  expect(matches('a?c', 'abc')).toBe(false)
  expect(matches('[ab]', 'a')).toBe(false)
})
