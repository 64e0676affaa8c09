import { expect, test } from 'vitest'
import { memoizeByContent } from './conversion.ts'

test('S4: conversions are cached by content', () => {
  const made: object[] = []
  const kept = memoizeByContent((schema: object) => made.push(schema))
  expect([kept({ a: 1 }), kept({ a: 1 }), kept({ a: 2 }), kept({ a: 1 })]).toEqual([1, 1, 2, 1])
  expect(made).toEqual([{ a: 1 }, { a: 2 }])
})

test('S4: the order of members matters to the cache', () => {
  const kept = memoizeByContent((schema: object) => Object.keys(schema))
  expect([kept({ a: 1, b: 1 }), kept({ b: 1, a: 1 })]).toEqual([
    ['a', 'b'],
    ['b', 'a'],
  ])
})

test('S4: failures are cached', () => {
  let tries = 0
  const kept = memoizeByContent(() => {
    throw new Error(`try ${++tries}`)
  })
  expect(() => kept({})).toThrow('try 1')
  expect(() => kept({})).toThrow('try 1')
})

test('S4: the cache is bounded', () => {
  let count = 0
  const kept = memoizeByContent((_schema: object) => ++count, 2)
  kept({ n: 1 })
  kept({ n: 2 })
  kept({ n: 1 })
  kept({ n: 3 })
  expect([kept({ n: 1 }), kept({ n: 2 })]).toEqual([1, 4])
})
