import { expect, test } from 'vitest'
import { quote, quoteAscii, shorten } from './message-text.ts'

test('T1: shortened text fits, ends with an ellipsis and has no half characters', () => {
  expect(shorten('abc', 3)).toBe('abc')
  expect(shorten('abcd', 3)).toBe('ab…')
  expect(shorten('ab cd', 4)).toBe('ab…')
  expect(shorten('ab\u{1f600}cd', 4)).toBe('ab…')
  expect(shorten('ab\u{1f600}cd', 5)).toBe('ab\u{1f600}…')
  expect(shorten('a\ud83db', 3)).toBe('a\ufffdb')
})

test('T1: a quote is one line without invisible characters and cannot be ended by its text', () => {
  expect(quote('a"\n\u2028\u202eb\u200b\x9bc')).toBe('"a\\"\\n\\u{2028}\\u{202e}b\\u{200b}\\u{9b}c"')
  expect(quote('日本語', 100)).toBe('"日本語"')
  expect(quote('x'.repeat(200))).toHaveLength(102)
})

test('T1: a quote in ASCII shows letters that look like others', () => {
  expect(quoteAscii('n\u0430me\x7f')).toBe('"n\\u0430me\\u007f"')
  expect(quoteAscii('x'.repeat(200))).toHaveLength(102)
})
