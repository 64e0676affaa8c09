import { expect, test } from 'vitest'
import { searchPattern } from './patterns.ts'

test('W7: searchPattern finds in linear time what a pattern matches', () => {
  const isMatch = searchPattern('^(a+)+$')
  expect([isMatch?.('aaaa'), isMatch?.(`${'a'.repeat(10_000)}b`)]).toEqual([true, false])
  expect(searchPattern('\\d{3}')?.('a 123')).toBe(true)
})

test.each(['(', '(?=a)', '(a)\\1', 'a{1000}', 'a'.repeat(3000)])('W7: searchPattern does not take %s', (source) => {
  expect(searchPattern(source)).toBeUndefined()
})
