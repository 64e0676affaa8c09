import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasMoreValues, integerMember, maxDepth } from './json-text.ts'
import { jsonValue } from './parse-json.ts'

const more = (text: string, max: number) => hasMoreValues(Buffer.from(text), max)

/** Counts the value itself and all values in it; an empty container counts as two. */
function count(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  const inside = Object.values(value)
  return (
    1 +
    Math.max(
      1,
      inside.reduce((sum: number, one) => sum + count(one), 0),
    )
  )
}

test('V6: values are counted as the parser would find them, whatever the strings hold', () => {
  fc.assert(
    fc.property(fc.json(), (inner) => {
      const text = `[${inner}]`
      const values = count(jsonValue(text))
      expect(more(text, values)).toBe(false)
      // Text that is no longer than the limit is not scanned, because it cannot have more values.
      expect(more(text, values - 1)).toBe(text.length > values - 1)
    }),
  )
  expect(more('["[,[,[,", "\\",,,,"]', 3)).toBe(false)
})

test('V6: text that is not JSON is counted up to its flaw', () => {
  expect(more(`[${'1,'.repeat(100)}`, 50)).toBe(true)
  expect(more(`["\n${'1,'.repeat(100)}`, 50)).toBe(false)
})

test('V6: the id of a message is found however deep the message nests', () => {
  const deep = '['.repeat(maxDepth + 10)
  const id = (text: string) => integerMember(Buffer.from(text), 'id')
  expect(id(`{"jsonrpc":"2.0","result":{"id":3,"a":${deep}${']'.repeat(maxDepth + 10)}}, "id" : 7 }`)).toBe(7)
  expect(id(`{"id":12,"result":${deep}`)).toBe(12)
  expect(id('{"a":"id","b":{"id":1}}')).toBeUndefined()
  expect(id('{"id":"12"}')).toBeUndefined()
  expect(id('{"id":1.5}')).toBeUndefined()
})
