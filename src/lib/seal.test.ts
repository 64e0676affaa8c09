import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { createSeal } from './seal.ts'

const seal = createSeal('a secret that is long enough')

test('G3: a sealed text can be opened with its own binding and secret only', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (text, binding, other) => {
      const sealed = seal.close(text, binding)
      expect(sealed).toMatch(/^[\w-]+$/)
      expect(seal.open(sealed, binding)).toBe(text.toWellFormed())
      if (other !== binding) expect(seal.open(sealed, other)).toBeUndefined()
      expect(createSeal('another secret, also long').open(sealed, binding)).toBeUndefined()
    }),
    runs(60, 3_000),
  )
})

test('G3: any change breaks it, and the same text is never sealed alike', () => {
  const sealed = seal.close('state', 'me')
  for (let at = 0; at < sealed.length; at++) {
    const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
    expect(seal.open(changed, 'me')).toBeUndefined()
  }
  for (const odd of ['', 'x', `${sealed}-TAMPERED`, `${sealed}=`, ` ${sealed}`]) {
    expect(seal.open(odd, 'me')).toBeUndefined()
  }
  expect(seal.close('state', 'me')).not.toBe(sealed)
})
