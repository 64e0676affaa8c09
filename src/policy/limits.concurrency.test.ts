import { expect, test } from 'vitest'
import { compileConcurrency } from './limits.ts'

test('B7, G7: an agent has its own number of calls in flight, or that of the nearest it inherits from', () => {
  const limitOf = compileConcurrency({
    team: { concurrency: 8 },
    'team.role': {},
    'team.role.junior': { concurrency: 2 },
    'team.gone.senior': {},
    other: {},
  })
  expect(['team', 'team.role', 'team.role.junior', 'team.gone.senior'].map(limitOf)).toEqual([8, 8, 2, 8])
  expect(['other', 'unheard-of', 'constructor', '__proto__'].map(limitOf)).toEqual(Array(4).fill(undefined))
})
