import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasDuplicateKeys } from './duplicates.ts'

test('security: a key that occurs twice is found at any depth, also when it is spelt differently', () => {
  expect(hasDuplicateKeys(Buffer.from('{"a":1,"a":2}'))).toBe(true)
  expect(hasDuplicateKeys(Buffer.from('{"a":[{"b" : {"path":"x", "p\\u0061th":"y"}}]}'))).toBe(true)
  expect(hasDuplicateKeys(Buffer.from('{"a":{"a":{"a":["a","a"]}},"b":"a"}'))).toBe(false)
  expect(hasDuplicateKeys(Buffer.from('[{"a":1},{"a":1}]'))).toBe(false)
})

test('security: no key of an ordinary value is taken for a duplicate', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(hasDuplicateKeys(Buffer.from(json))).toBe(false)
    }),
  )
})
