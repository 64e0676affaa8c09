import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createBudget } from './retry.ts'

test('F12: a server that is seldom called has a reserve, which is restored over time', () => {
  const clock = createManualClock()
  const budget = createBudget(0.2, clock)
  expect([1, 2, 3, 4].map(() => budget.spend())).toEqual([true, true, true, false])
  clock.advance(10_000)
  expect([1, 2].map(() => budget.spend())).toEqual([true, false])
  clock.advance(3_600_000)
  expect([1, 2, 3, 4].map(() => budget.spend())).toEqual([true, true, true, false])
})

test('F12: a budget of zero allows no retries', () => {
  const clock = createManualClock()
  const budget = createBudget(0, clock)
  budget.earn()
  clock.advance(100_000)
  expect(budget.spend()).toBe(false)
})

test('F12: a budget of a fifth lets one retry through for five calls, and saves up no more than twenty', () => {
  const budget = createBudget(0.2, createManualClock())
  for (let count = 0; count < 3; count++) budget.spend()
  for (let count = 0; count < 5; count++) budget.earn()
  expect([1, 2].map(() => budget.spend())).toEqual([true, false])
  for (let count = 0; count < 10_000; count++) budget.earn()
  expect(Array.from({ length: 25 }, () => budget.spend()).filter(Boolean)).toHaveLength(20)
})

test('F12: over any period, retries are at most the share, the savings and the reserve', () => {
  const steps = fc.array(fc.oneof(fc.constant('earn' as const), fc.constant('spend' as const), fc.nat({ max: 5_000 })))
  fc.assert(
    fc.property(steps, fc.constantFrom(0.05, 0.2, 1), (actions, share) => {
      const clock = createManualClock()
      const budget = createBudget(share, clock)
      const start = clock.now()
      let calls = 0
      let retries = 0
      for (const action of actions) {
        if (action === 'earn') {
          calls++
          budget.earn()
        } else if (action === 'spend') {
          if (budget.spend()) retries++
        } else clock.advance(action)
        expect(retries).toBeLessThanOrEqual(3 + calls * share + (clock.now() - start) / 10_000 + 1e-9)
      }
    }),
  )
})
