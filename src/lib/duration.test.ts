import { expect, test } from 'vitest'
import { parseDuration } from './duration.ts'

test.each([
  ['500ms', 500],
  ['1.5s', 1_500],
  [' 5m ', 300_000],
  ['1h', 3_600_000],
  ['2d', 172_800_000],
])('%s', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', '5', '5 m', '-1s', '1w', '1e3s'])('"%s" is not a duration', (text) => {
  expect(parseDuration(text)).toBeUndefined()
})
