import { expect, test } from 'vitest'
import { lifetimeMs } from './options.ts'

test.each([
  ['30m', 1_800_000],
  ['12h', 43_200_000],
  ['90d', 7_776_000_000],
  ['3650d', 315_360_000_000],
])('B11: %s', (text, ms) => {
  expect(lifetimeMs(text)).toBe(ms)
})

test.each(['', '0d', '90', 'd', '-1d', '1.5d', '3651d', '1y', '9'.repeat(400) + 'd'])('B11: %s is refused', (text) => {
  expect(() => lifetimeMs(text)).toThrow()
})
