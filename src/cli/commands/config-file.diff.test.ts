import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffOf as diff } from '../../catalog/pins/definition.ts'
import { printDiff } from './config-file.ts'

const shown = (before: string, after: string) => diff(before, after).map(([mark, text]) => mark + text)

test('B11: a difference shows what changes with a few lines around it', () => {
  const lines = Array.from({ length: 20 }, (_, index) => String(index))
  expect(shown(lines.join('\n'), lines.toSpliced(10, 1, 'new', 'newer').join('\n'))).toEqual([
    '…',
    ' 7',
    ' 8',
    ' 9',
    '-10',
    '+new',
    '+newer',
    ' 11',
    ' 12',
    ' 13',
    '…',
  ])
  expect(shown('', 'a\nb\n')).toEqual(['+a', '+b'])
  expect(shown('a\r\nb', 'a\nb\n')).toEqual(['…'])
})

test('B11: same and removed lines are the old text, same and added ones the new text', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diff(before.join('\n'), after.join('\n')).filter(([mark]) => mark !== '…')
      const kinds = (...wanted: string[]) => lines.filter(([mark]) => wanted.includes(mark)).map(([, text]) => text)
      const changed = lines.some(([mark]) => mark !== ' ')
      if (before.length <= 4 && after.length <= 4 && changed) {
        expect(kinds(' ', '-').join('\n')).toBe(before.join('\n').replace(/\n$/, ''))
        expect(kinds(' ', '+').join('\n')).toBe(after.join('\n').replace(/\n$/, ''))
      }
      // An empty file has no line, one with a line break has an empty one.
      const content = (text: string) => (text === '' ? undefined : text.replace(/\n$/, ''))
      expect(changed).toBe(content(before.join('\n')) !== content(after.join('\n')))
    }),
  )
})

test.each([
  ['token: generated', true],
  ['token: none # open', true],
  ['"token": "generated",', true],
  ['token: none.of-your-business-42', false],
  ['token: generated/abc.defghi', false],
  ['"token": "none:abcdef",', false],
])('B6: a difference shows %s: %s', (line, isShown) => {
  const printed: string[] = []
  const output = { print: (text: string) => void printed.push(text), paint: (_: unknown, text: string) => text }
  printDiff('file', '', line, [], output as unknown as Parameters<typeof printDiff>[4])
  expect(printed.join('\n').includes(line)).toBe(isShown)
})
