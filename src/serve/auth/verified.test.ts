import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { operator as somebody } from './identity.ts'
import { createVerifiedTokens } from './jwt.ts'

test('B6: a verified token is forgotten when it expires, and after five minutes in any case', () => {
  const clock = createManualClock()
  const verified = createVerifiedTokens(clock)
  verified.keep('short', somebody, clock.now() + 1_000)
  verified.keep('long', somebody, clock.now() + 3_600_000)
  clock.advance(999)
  expect(verified.get('short')).toBe(somebody)
  clock.advance(1)
  expect(verified.get('short')).toBeUndefined()
  clock.advance(298_999)
  expect(verified.get('long')).toBe(somebody)
  clock.advance(1)
  expect(verified.get('long')).toBeUndefined()
})

test('B6: the number of tokens is limited; recently used ones stay', () => {
  const clock = createManualClock()
  const verified = createVerifiedTokens(clock, 3)
  for (const name of ['a', 'b', 'c']) verified.keep(name, somebody, clock.now() + 1_000)
  verified.get('a')
  verified.keep('d', somebody, clock.now() + 1_000)
  expect(['a', 'b', 'c', 'd'].filter((name) => verified.get(name) !== undefined)).toEqual(['a', 'c', 'd'])
})
