import { expect, test } from 'vitest'
import { Budget, createBudgets } from './budget.ts'

const overloaded = expect.objectContaining({ code: 'OVERLOADED', details: { retryAfterMs: 1_000 } })

test('V6: a budget is bounded for each caller and for all, and released amounts can be used again', () => {
  const budget = new Budget('streams', { what: 'streams', limit: 5, perCaller: 3 })
  expect([budget.take('anna', 2), budget.take('anna', 2), budget.take('anna')]).toEqual([
    undefined,
    'caller',
    undefined,
  ])
  budget.claim('bert', 2)
  expect(budget.take('cleo')).toBe('all')
  expect(() => budget.claim('anna')).toThrow(overloaded)
  expect(() => budget.check('cleo')).toThrow(overloaded)
  expect(budget.use()).toEqual({ name: 'streams', used: 5, limit: 5, perCaller: 3, largest: 3, refused: 4 })
  budget.give('anna', 3)
  expect([budget.usedBy('anna'), budget.used]).toEqual([0, 2])
  budget.claim('cleo', 3)
})

test('V6: no caller can use up a budget', () => {
  const budgets = createBudgets()
  budgets.register('calls', () => ({ used: 1, limit: 4, perCaller: 3, largest: 1, refused: 0 }))
  const report = budgets.report()
  expect(new Set(report.map(({ name }) => name)).size).toBe(report.length)
  expect(report.find(({ name }) => name === 'calls')).toMatchObject({ used: 1, limit: 4 })
  for (const { perCaller, limit } of report) expect(perCaller).toBeLessThan(limit)
})
