import fc from 'fast-check'
import { expect, test } from 'vitest'
import { distance, nearMiss } from './near-miss.ts'

test('insertions, deletions, replacements and swaps count as one edit each', () => {
  expect(distance('prot', 'port')).toBe(1)
  expect(distance('comand', 'command')).toBe(1)
  expect(distance('kitten', 'sitting')).toBe(3)
  expect(distance('', 'abc')).toBe(3)
})

test('case and separators do not matter, which is what people get wrong most', () => {
  const keys = ['readOnly', 'readTools', 'disabled']
  expect(nearMiss('readonly', keys)).toBe('readOnly')
  expect(nearMiss('read_only', keys)).toBe('readOnly')
  expect(nearMiss('read-tool', keys)).toBe('readTools')
  expect(nearMiss('dissabled', keys)).toBe('disabled')
})

test('nothing is suggested for a word that resembles nothing', () => {
  expect(nearMiss('banana', ['readOnly', 'disabled'])).toBeUndefined()
  expect(nearMiss('ab', ['cd'])).toBeUndefined()
})

test('the distance is symmetric, zero only for equal words and never above the longer length', () => {
  const word = fc.string({ maxLength: 12 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(distance(a, b)).toBe(distance(b, a))
      expect(distance(a, b) === 0).toBe(a === b)
      expect(distance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
    }),
  )
})
