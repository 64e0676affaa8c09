import { describe, expect, test } from 'vitest'
import type { Keepsakes } from '../../src/core/keepsakes.ts'

export interface KeepsakesUnderTest {
  readonly keepsakes: Keepsakes
  /** Settles when the time of what was kept for `soon` is over. */
  over(): Promise<void>
}

/** As short as the store can be told. */
const soon = 40
const long = 3_600_000

/** What every place for keepsakes must do. `create` gives an empty one that has room for so many characters. */
export function keepsakesContract(name: string, create: (most: number) => Promise<KeepsakesUnderTest>): void {
  describe(`B10: keepsakes in ${name}`, () => {
    test('what is kept is found by its key, as it was kept last', async () => {
      const { keepsakes } = await create(1_000)
      await keepsakes.keep('a', 'first', long)
      await keepsakes.keep('a', 'zweites – ✓', long)
      expect(await keepsakes.find('a', long)).toBe('zweites – ✓')
      expect(await keepsakes.find('a', long)).toBe('zweites – ✓')
      expect(await keepsakes.find('b', long)).toBeUndefined()
    })

    test('it goes when its time is over, which begins anew when it is found', async () => {
      const { keepsakes, over } = await create(1_000)
      for (const key of ['a', 'b']) await keepsakes.keep(key, 'text', soon)
      expect(await keepsakes.find('b', long)).toBe('text')
      await over()
      expect(await keepsakes.find('a', soon)).toBeUndefined()
      expect(await keepsakes.find('b', soon)).toBe('text')
      await over()
      expect(await keepsakes.find('b', soon)).toBeUndefined()
    })

    test('what was used longest ago makes room, and what is too large for all is not kept', async () => {
      const { keepsakes } = await create(100)
      for (const key of ['a', 'b', 'c']) await keepsakes.keep(key, key.repeat(30), long)
      expect(await keepsakes.find('a', long)).toBe('a'.repeat(30))
      await keepsakes.keep('d', 'd'.repeat(30), long)
      const found = await Promise.all(['a', 'b', 'c', 'd'].map((key) => keepsakes.find(key, long)))
      expect(found.map((text) => text?.[0])).toEqual(['a', undefined, 'c', 'd'])
      await keepsakes.keep('e', 'e'.repeat(101), long)
      expect(await keepsakes.find('e', long)).toBeUndefined()
    })
  })
}
