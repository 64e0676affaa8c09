import fc from 'fast-check'
import { expect, test } from 'vitest'
import { didYouMean, nearMisses } from './near.ts'

test('E2: a misspelt name finds what was meant, nearest first, and nothing that is far off', () => {
  expect(nearMisses('fileystem', ['memory', 'filesystem', 'fs'])).toEqual(['filesystem'])
  expect(nearMisses('FILESYSTEM', ['filesystem'])).toEqual(['filesystem'])
  expect(nearMisses('raed_file', ['read_file', 'read_files', 'write_file'])).toEqual(['read_file', 'read_files'])
  expect(nearMisses('zebra', ['filesystem', 'memory'])).toEqual([])
  expect(nearMisses('', ['a'])).toEqual([])
})

test('E2: a hint ends a sentence, with or without a near miss', () => {
  expect(didYouMean('memroy', ['memory'])).toBe('; did you mean "memory"?')
  expect(didYouMean('zebra', ['memory'])).toBe('.')
  expect(didYouMean('zebra', ['memory'], '; look around.')).toBe('; look around.')
})

test('E2: one wrong letter is always found, and a huge word costs nothing', () => {
  const names = fc.stringMatching(/^[a-z]{4,12}$/)
  fc.assert(
    fc.property(names, fc.nat(), (name, at) => {
      const index = at % name.length
      const wrong = `${name.slice(0, index)}-${name.slice(index + 1)}`
      expect(nearMisses(wrong, [name])).toEqual([name])
    }),
  )
  expect(nearMisses('x'.repeat(5_000_000), ['x'.repeat(5_000_000)])).toEqual([])
})
