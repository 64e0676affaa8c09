import { expect, test } from 'vitest'
import { backoffMs, jitteredBackoffMs, retryAfterMs } from './duration.ts'

const backoff = { firstMs: 100, maxMs: 1_000 }

test('the delay doubles up to its maximum', () => {
  expect([0, 1, 2, 3, 4, 5_000].map((failures) => backoffMs(failures, backoff))).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ])
})

test('jitter is a part of the delay', () => {
  expect([0, 0.5, 1].map((random) => jitteredBackoffMs(1, backoff, () => random))).toEqual([0, 100, 200])
})

const now = Date.parse('2026-01-01T00:00:00Z')

test('seconds, also with a fraction, and dates are read', () => {
  expect(retryAfterMs('120', now)).toBe(120_000)
  expect(retryAfterMs(' 0.5 ', now)).toBe(500)
  expect(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30_000)
})

test('nobody has to wait for longer than a day', () => {
  for (const value of ['999999999', 'Fri, 31 Dec 9999 23:59:59 GMT']) expect(retryAfterMs(value, now)).toBe(86_400_000)
})

test('a date in the past means no delay', () => {
  expect(retryAfterMs('Wed, 31 Dec 2025 23:59:00 GMT', now)).toBe(0)
})

test.each([undefined, '', 'soon', '-1', '1e3', '99999999999'])('%s is unreadable', (value) => {
  const read = retryAfterMs(value, now)
  expect(read === undefined || Number.isFinite(read)).toBe(true)
  if (value === undefined || value === '' || value === 'soon') expect(read).toBeUndefined()
})
