import { expect, test } from 'vitest'
import { fuzzyScore } from './fuzzy.ts'

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
