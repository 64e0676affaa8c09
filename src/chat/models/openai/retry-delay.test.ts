import { expect, test } from 'vitest'
import { retryDelayMs } from './errors.ts'

const now = Date.parse('2026-11-03T12:00:00Z')

test.each([
  [{ 'retry-after': '3' }, 3_000],
  [{ 'retry-after': '0.25' }, 250],
  [{ 'retry-after': 'Tue, 03 Nov 2026 12:00:05 GMT' }, 5_000],
  [{ 'retry-after': 'Tue, 03 Nov 2026 11:00:00 GMT' }, 0],
  [{ 'retry-after-ms': '120', 'retry-after': '1' }, 120],
  [{ 'retry-after': 'soon' }, undefined],
  [{}, undefined],
])('S6: %j', (headers: Record<string, string>, expected) => {
  expect(retryDelayMs((name) => headers[name], now)).toBe(expected)
})
