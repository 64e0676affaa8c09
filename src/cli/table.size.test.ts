import { expect, test } from 'vitest'
import { sizeText } from './table.ts'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1.0 KB'],
  [12_300, '12 KB'],
  [4_200_000, '4.2 MB'],
  [7e12, '7000 GB'],
])('B11: %i is shown as %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})
