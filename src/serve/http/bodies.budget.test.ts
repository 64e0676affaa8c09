import { expect, test } from 'vitest'
import { createBodyBudget } from './bodies.ts'

const status = (run: () => void): unknown => {
  try {
    run()
    return 'taken'
  } catch (thrown) {
    return (thrown as { status: number }).status
  }
}

test('V6: bytes are bounded per caller and in all, and given back when a request is over', () => {
  const budget = createBodyBudget({ maxInFlight: 100, maxInFlightPerCaller: 40 })
  const anna = [budget.open('anna'), budget.open('anna')] as const
  anna[0].add(30)
  expect(status(() => anna[1].add(11))).toBe(429)
  anna[1].add(10)
  const others = ['bert', 'carl'].map((name) => budget.open(name))
  for (const account of others) account.add(30)
  expect(budget.use().used).toBe(100)
  expect(status(() => budget.open('dora').add(1))).toBe(429)
  for (const account of [...anna, ...others]) {
    account.close()
    account.close()
  }
  expect(budget.use().used).toBe(0)
  expect(status(() => budget.open('dora').add(41))).toBe(413)
  expect(status(() => budget.open('anna').add(40))).toBe('taken')
})
