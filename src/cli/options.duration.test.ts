import { expect, test } from 'vitest'
import { durationMs } from './options.ts'

test.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5m', 90_000],
  ['1h', 3_600_000],
])('B11: --timeout %s', (text, ms) => {
  expect(durationMs(text)).toBe(ms)
})

test.each(['30', '', 's', '-5s', '0s', '10 parsecs', '1000h'])('B11: --timeout %j is refused', (text) => {
  expect(() => durationMs(text)).toThrow()
})
