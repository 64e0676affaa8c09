import { expect, test } from 'vitest'
import { backoffMs, jitteredBackoffMs } from './backoff.ts'

const backoff = { firstMs: 100, maxMs: 1_000 }

test('the delay doubles up to its maximum', () => {
  expect([0, 1, 2, 3, 4, 5_000].map((failures) => backoffMs(failures, backoff))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ])
})

test('jitter is a part of the delay', () => {
  expect([0, 0.5, 1].map((random) => jitteredBackoffMs(1, backoff, () => random))).toEqual([0, 100, 200])
})
