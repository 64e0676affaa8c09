import { expect, test } from 'vitest'
import { escapeStep, resolveReference, unescapeStep } from './json-pointer.ts'

const root = { $defs: { 'a/b~c': 1, 'x y': 2, '50%': 3 }, anyOf: [{ type: 'null' }] }

test.each([
  ['#', root],
  ['#/$defs/a~1b~0c', 1],
  ['#/%24defs/x%20y', 2],
  ['#/$defs/50%', 3],
  ['#/anyOf/0', { type: 'null' }],
  ['#/$defs/missing', undefined],
  ['#/$defs/missing/deeper', undefined],
  ['#/constructor', undefined],
  ['#anchor', undefined],
  ['https://example.com/schema', undefined],
  [7, undefined],
])('F9: the reference %s is resolved within its own document only', (reference, value) => {
  expect(resolveReference(root, reference)).toEqual(value)
})

test('F9: escaped names are read back', () => {
  for (const name of ['~', '/', '~1', '~0/', 'a~01b']) expect(unescapeStep(escapeStep(name))).toBe(name)
})
