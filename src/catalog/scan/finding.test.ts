import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { excerptOf, visible } from './finding.ts'

test('B5: everything invisible is spelt out', () => {
  expect(visible('a\u001b[31m\u200b\u202e\u{e0041}b')).toBe('a\\u{1b}[31m\\u{200b}\\u{202e}\\u{e0041}b')
  expect(visible('one\ntwo\tthree')).toBe('one\\ntwo\\tthree')
  expect(visible('one\ntwo\u0008', 'lines')).toBe('one\ntwo\\u{8}')
  expect(visible('plain, é, 漢字, 👍')).toBe('plain, é, 漢字, 👍')
})

test('B5: no text can move the cursor or change the direction of a terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      expect(visible(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u)
    }),
  )
})

test('an excerpt shows a place with its surroundings', () => {
  expect(excerptOf('x'.repeat(100) + ' here ' + 'y'.repeat(100), 101, 4)).toMatch(/^…x{29} here y+…$/)
})
