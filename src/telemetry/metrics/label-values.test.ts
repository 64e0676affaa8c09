import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { labelValues, other } from './family.ts'

const redact = (text: string) => text

test('F15: names up to the limit keep their own label, later ones share one', () => {
  const labelOf = labelValues({ max: 2, redact })
  expect(['a', 'b', 'c', 'a', 'c', 'b', 'd'].map(labelOf)).toEqual(['a', 'b', other, 'a', other, 'b', other])
})

test('F15: a name that is far too long does not count towards the limit', () => {
  const labelOf = labelValues({ max: 1, redact })
  expect(labelOf('x'.repeat(100_000))).toBe(other)
  expect(labelOf('a')).toBe('a')
})

test('F15: for any names, labels are few, short and valid', () => {
  const names = fc.array(fc.string({ unit: anyCharacter, maxLength: 300 }), { maxLength: 50 })
  fc.assert(
    fc.property(names, (all) => {
      const labelOf = labelValues({ max: 10, redact })
      const labels = all.map(labelOf)
      expect(new Set(labels).size).toBeLessThanOrEqual(11)
      expect(all.map(labelOf)).toEqual(labels)
      for (const label of labels) {
        expect(label.isWellFormed()).toBe(true)
        expect(label.length).toBeLessThanOrEqual(120)
      }
    }),
  )
})
