import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import type { Definition } from '../../core/entry.ts'
import { canonical } from '../../json/canonical-json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { definitionHash, pinnedPart } from './definition.ts'

const definitions = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), {
  maxKeys: 6,
}) as fc.Arbitrary<Definition>

/** The same value with the members of every object the other way round. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  )
}

/** Every value that differs from the given one in one place. */
function* altered(value: unknown): Generator<unknown> {
  yield [value]
  if (typeof value === 'string') yield `${value}.`
  if (typeof value === 'number') yield value === 0 ? 1 : -value
  if (typeof value === 'boolean') yield !value
  if (value === null) yield ''
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      for (const other of altered(item)) yield value.with(index, other)
      yield value.toSpliced(index, 1)
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const { [key]: _, ...rest } = value as Record<string, unknown>
      yield rest
      for (const other of altered(item)) yield Object.fromEntries([...Object.entries(rest), [key, other]])
    }
  }
}

test('B5: the hash does not depend on the order of members', () => {
  fc.assert(
    fc.property(definitions, (definition) => {
      expect(definitionHash(reversed(definition) as Definition)).toBe(definitionHash(definition))
    }),
  )
})

test('B5: the hash changes with every value, at any depth', () => {
  fc.assert(
    fc.property(definitions, (definition) => {
      const hash = definitionHash(definition)
      for (const other of altered(definition)) {
        if (JSON.stringify(reversed(other)) !== JSON.stringify(reversed(definition))) {
          expect(definitionHash(other as Definition)).not.toBe(hash)
        }
      }
    }),
    runs(12, 60),
  )
})

test('B5: canonical JSON is JSON of the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(jsonValue(canonical(value))).toEqual(jsonValue(JSON.stringify(value)))
    }),
  )
})

test('B5: members with names of prototype properties count like others', () => {
  const plain = jsonValue('{"name":"a","__proto__":{"x":1}}') as Definition
  expect(definitionHash(plain)).not.toBe(definitionHash({ name: 'a' }))
  expect(pinnedPart(plain)).toBe(plain)
})
