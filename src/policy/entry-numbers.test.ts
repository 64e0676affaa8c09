import { expect, test } from 'vitest'
import { createEntryNumbers } from './rules.ts'

test('B7: an entry with a long name gets no number, so its decision is not cached', () => {
  let asked = 0
  let afresh = 0
  const numberOf = createEntryNumbers(
    2,
    () => {
      asked++
      return undefined
    },
    () => afresh++,
  )
  const numbers = (name: string) => [numberOf('files', name, false).number, numberOf('files', name, false).number]
  expect([numbers('x://1'), numbers('x://2'), asked]).toEqual([[0, 0], [1, 1], 4])
  for (let number = 0; number < 10; number++) {
    expect(numbers(`x://${number}/${'y'.repeat(300)}`)).toEqual([undefined, undefined])
  }
  expect([afresh, asked]).toEqual([0, 44])
  expect([numbers('x://3'), afresh]).toEqual([[0, 0], 1])
})
