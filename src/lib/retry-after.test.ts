import { expect, test } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

test('seconds, also with a fraction, and dates are read', () => {
  expect(retryAfterMs('120', now)).toBe(120_000)
  expect(retryAfterMs(' 0.5 ', now)).toBe(500)
  expect(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30_000)
})

test('a date in the past means no delay', () => {
  expect(retryAfterMs('Wed, 31 Dec 2025 23:59:00 GMT', now)).toBe(0)
})

test.each([undefined, '', 'soon', '-1', '1e3', '99999999999'])('%s is unreadable', (value) => {
  const read = retryAfterMs(value, now)
  expect(read === undefined || Number.isFinite(read)).toBe(true)
  if (value === undefined || value === '' || value === 'soon') expect(read).toBeUndefined()
})
