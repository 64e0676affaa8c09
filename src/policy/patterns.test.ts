import fc from 'fast-check'
import { expect, test } from 'vitest'
import { expectCpuBelow } from '../../tests/fixtures/cpu-time.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import { compilePattern, matches } from '../lib/wildcard.ts'
import { compilePatterns, createPatternCompiler, matchFirst, matchName, matchStar } from './patterns.ts'

const word = (signs: string) => fc.string({ unit: fc.constantFrom(...signs), maxLength: 8 })

test('G6: in a list, names are exact and stars are tried in order', () => {
  fc.assert(
    fc.property(fc.array(word('ab*'), { maxLength: 5 }), word('ab'), (list, text) => {
      const compiled = compilePatterns(list, createPatternCompiler(), (index) => index)
      const find = (accepts: (pattern: string) => boolean) => {
        const index = list.findIndex((pattern) => accepts(pattern) && matches(pattern, text))
        return index < 0 ? undefined : index
      }
      expect(matchName(compiled, text)).toBe(find((pattern) => !pattern.includes('*')))
      expect(matchStar(compiled, text)).toBe(find((pattern) => pattern.includes('*')))
      expect(matchFirst(compiled, text)).toBe(find(() => true))
    }),
    runs(1_000, 50_000),
  )
})

test('G6: no pattern makes a decision slow', async () => {
  const pattern = compilePattern(`${'*a'.repeat(200)}*b*c`)
  await expectCpuBelow(2_000, () => {
    for (let round = 0; round < 100; round++) expect(pattern('a'.repeat(20_000))).toBe(false)
  })
})
