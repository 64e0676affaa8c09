import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../tests/fixtures/cpu-time.ts'
import { withoutHidden } from './characters.ts'

test.each([
  ['colours', 'a\x1b[1;31mb\x1b[0m', 'ab'],
  ['a title of the window', '\x1b]0;evil\x07x', 'x'],
  ['half a sequence', 'a\x1b', 'a'],
  ['C1 controls', 'a\x9b31mb\x85', 'ab'],
  ['directions', '\u202eabc\u2066d\u2069', 'abcd'],
  ['zero widths', 'i\u200bg\u2060n\ufeffore', 'ignore'],
  ['tags', 'hi\u{e0069}\u{e0067}\u{e007f}', 'hi'],
  ['joiners between letters', 'a\u200db\u200cc', 'abc'],
  ['joiners that join nothing', '👍🏽\u200d!', '👍🏽!'],
  ['soft hyphens and other marks without width', 'ig\xadno\u034fre', 'ignore'],
  ['carriage returns, which overwrite a line,', 'rm -rf /\rls', 'rm -rf /\nls'],
  ['lines as other systems end them', 'a\r\nb\tc\n', 'a\nb\tc\n'],
])('security: %s are taken out', (_, text, clean) => {
  expect(withoutHidden(text)).toBe(clean)
})

test.each(['👩‍💻 ❤️ 👍🏽', 'می‌خواهم', 'क्‍ष', 'שלום\u200f!', 'grüße', '日本語'])('security: %s stays as it is', (text) => {
  expect(withoutHidden(text)).toBe(text)
})

test('security: line ends are kept if the text may be JSON, except for lone carriage returns', () => {
  expect(withoutHidden('"a\u2028b"\r\n"c"\r', 'kept')).toBe('"a\u2028b"\r\n"c"\n')
})

test('security: of any text nothing hidden is left, however it is put together', () => {
  const parts = fc.constantFrom(
    '\x1b',
    '[',
    '3',
    'm',
    ']',
    '\x07',
    '\\',
    '\u202e',
    '\u200b',
    '\u200d',
    'a',
    '😀',
    '\r',
    '\n',
    ' ',
  )
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 20 }), (text) => {
      expect(withoutHidden(text.join(''))).not.toMatch(/[\x1b\x07\u202e\u200b]/)
    }),
  )
})

test('security: a long text takes no longer than it should', () =>
  expectCpuBelow(5_000, () => {
    for (const part of ['\x1b[', '\x1b]', '\x1b[0', '\u200d', 'a\u200d']) withoutHidden(part.repeat(100_000))
  }))
