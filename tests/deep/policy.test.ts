import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bothSay, cases } from '../../src/policy/policies.fixture.ts'

test('G6, F7, G7: 100,000 random policies and calls, and no disagreement with the model', () => {
  let calls = 0
  fc.assert(
    fc.property(cases(3), ([written, asked]) => {
      for (const { said, modelled, decision, explained } of bothSay(written, asked)) {
        expect(said).toEqual(modelled)
        expect(explained).toEqual(decision)
        calls++
      }
    }),
    { numRuns: 100_000 },
  )
  console.info('calls compared:', calls)
})
