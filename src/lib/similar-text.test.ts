import fc from 'fast-check'
import { expect, test } from 'vitest'
import { didYouMean, editDistance, fuzzyScore, nearMiss, nearMisses } from './similar-text.ts'

test('E2: a misspelt name finds what was meant, nearest first, and nothing that is far off', () => {
  expect(nearMisses('fileystem', ['memory', 'filesystem', 'fs'])).toEqual(['filesystem'])
  expect(nearMisses('FILESYSTEM', ['filesystem'])).toEqual(['filesystem'])
  expect(nearMisses('raed_file', ['read_file', 'read_files', 'write_file'])).toEqual(['read_file', 'read_files'])
  expect(nearMisses('zebra', ['filesystem', 'memory'])).toEqual([])
  expect(nearMisses('', ['a', ''])).toEqual([])
  expect(nearMiss('ab', ['cd'])).toBeUndefined()
})

test('E2: case and separators do not matter, which is what people get wrong most', () => {
  const keys = ['readOnly', 'readTools', 'disabled']
  expect(nearMiss('readonly', keys)).toBe('readOnly')
  expect(nearMiss('read_only', keys)).toBe('readOnly')
  expect(nearMiss('read-tool', keys)).toBe('readTools')
  expect(nearMiss('dissabled', keys)).toBe('disabled')
})

test('E2: a hint ends a sentence, with or without a near miss', () => {
  expect(didYouMean('memroy', ['memory'])).toBe('; did you mean "memory"?')
  expect(didYouMean('zebra', ['memory'])).toBe('.')
  expect(didYouMean('zebra', ['memory'], '; look around.')).toBe('; look around.')
})

test('E2: one wrong letter is always found, and a huge word costs nothing', () => {
  const names = fc.stringMatching(/^[a-z]{4,12}$/)
  fc.assert(
    fc.property(names, fc.nat(), (name, at) => {
      const index = at % name.length
      const wrong = `${name.slice(0, index)}#${name.slice(index + 1)}`
      expect(nearMisses(wrong, [name])).toEqual([name])
    }),
  )
  expect(nearMisses('x'.repeat(5_000_000), ['x'.repeat(5_000_000)])).toEqual([])
})

test('insertions, deletions, replacements and swaps count as one edit each', () => {
  expect(editDistance('prot', 'port')).toBe(1)
  expect(editDistance('comand', 'command')).toBe(1)
  expect(editDistance('kitten', 'sitting')).toBe(3)
  expect(editDistance('', 'abc')).toBe(3)
})

test('the distance is symmetric, zero only for equal words and never above the longer length', () => {
  const word = fc.string({ maxLength: 12 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a))
      expect(editDistance(a, b) === 0).toBe(a === b)
      expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
    }),
  )
})

const best = (pattern: string, texts: readonly string[]) =>
  texts
    .map((text) => ({ text, score: fuzzyScore(pattern, text) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ text }) => text)

test('the whole text, its start, a word, a part and scattered letters match, in this order', () => {
  const texts = ['g-i-t', 'digit', 'my_git', 'github', 'git', 'tig']
  expect(best('GIT', texts)).toEqual(['git', 'github', 'my_git', 'digit', 'g-i-t'])
})

test('all words must occur, in any order; of equals the shorter text is better', () => {
  const texts = ['github__create_issue_comment', 'github__create_issue', 'github__list']
  expect(best('issue git', texts)).toEqual(['github__create_issue', 'github__create_issue_comment'])
  expect(best('ghci', texts)[0]).toBe('github__create_issue')
  expect(best('issue zebra', texts)).toEqual([])
})

test('a long pattern costs no more than a short one', () => {
  expect(fuzzyScore('a'.repeat(1_000_000), 'a'.repeat(300))).toBeGreaterThan(0)
})
