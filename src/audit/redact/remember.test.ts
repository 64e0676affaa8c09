import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoize } from '../../lib/memoize.ts'
import { createRedactor } from './redactor.ts'

const { text } = createRedactor({ secrets: ['correct horse battery'], keys: ['*api_key*'] })

/** Counts how often it is asked. */
function asked() {
  const texts: string[] = []
  const redact = (name: string) => {
    texts.push(name)
    return text(name)
  }
  return { texts, redact }
}

test.each([
  ['postgres://me:hunter2@h/db', 'postgres://me:[redacted]@h/db'],
  ['https://h.test/x?api_key=hunter2&y=1', 'https://h.test/x?api_key=[redacted]&y=1'],
  ['correct horse battery', '[redacted]'],
  ['read_text_file', 'read_text_file'],
  ['', ''],
])('B6: the name %s is recorded as %s, also the second time', (given, shown) => {
  const { texts, redact } = asked()
  const name = memoize(redact)
  expect([name(given), name(given)]).toEqual([shown, shown])
  expect(texts).toEqual([given])
})

test('B6: memoized texts equal those of the redactor, for any size of the memory', () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('redis://:hunter2@h', 'correct horse battery', 'a', 'b'))
  fc.assert(
    fc.property(fc.array(name), fc.integer({ min: 1, max: 4 }), (names, most) => {
      const remembering = memoize(text, most)
      expect(names.map(remembering)).toEqual(names.map(text))
    }),
  )
})

test('B6: names that callers make up do not fill the memory, and long ones are not kept', () => {
  const { texts, redact } = asked()
  const name = memoize(redact, 2)
  for (const one of ['a', 'b', 'a', 'b', 'c', 'a']) name(one)
  expect(texts).toEqual(['a', 'b', 'c', 'a'])
  const long = 'x'.repeat(600)
  name(long)
  name(long)
  expect(texts.slice(4)).toEqual([long, long])
})
