import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../tests/fixtures/any-character.ts'
import { cut, firstSentence, oneLine, printable, widthOf } from './table.ts'

describe('B11: text is measured in terminal cells', () => {
  test.each([
    ['plain', 5],
    ['', 0],
    ['日本語', 6],
    ['한글', 4],
    ['é', 1],
    ['e\u0301', 1],
    ['👍', 2],
    ['👩‍👩‍👧', 2],
    ['→ ok', 4],
  ])('%j takes %i', (text, width) => {
    expect(widthOf(text)).toBe(width)
  })

  test('a cut text fits, ends with … and starts like the whole', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 20 }), (text, width) => {
        const short = cut(text, width)
        expect(widthOf(short)).toBeLessThanOrEqual(width)
        if (widthOf(text) <= width) expect(short).toBe(text)
        else expect(short.endsWith('…') && text.startsWith(short.slice(0, -1))).toBe(true)
      }),
    )
  })
})

describe('B11: output of a server cannot control the terminal', () => {
  test('escape sequences, controls, bidi overrides and tag characters go; lines, tabs and emoji stay', () => {
    expect(printable('a\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\u202eb\u{e0041}\x08\ttab\r\nline 👩‍👩‍👧')).toBe(
      'aredb\ttab\nline 👩‍👩‍👧',
    )
  })

  test('nothing that is printed holds a control character other than newline and tab', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        expect(printable(text)).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f]/)
      }),
    )
  })

  test('a cell is one line', () => {
    expect(oneLine('  first\n\tsecond\u2028third ')).toBe('first second third')
  })
})

test.each([
  ['Adds two numbers. Both are needed.', 'Adds two numbers.'],
  ['Reads v1.2 files, e.g.x\nMore', 'Reads v1.2 files, e.g.x'],
  ['No end', 'No end'],
  ['', ''],
])('B11: a list shows the first sentence of %j', (text, sentence) => {
  expect(firstSentence(text)).toBe(sentence)
})
