import { describe, expect, test } from 'vitest'
import type { TtlStore } from '../../src/core/stores.ts'

export interface TtlStoreUnderTest {
  readonly ttlStore: TtlStore
  /** Settles when the time of what was kept for `soon` is over. */
  over(): Promise<void>
}

/** As short as the store can be told. */
const soon = 40
const long = 3_600_000

/** What every place for keepsakes must do. `create` gives an empty one that has room for so many characters. */
export function ttlStoreContract(name: string, create: (most: number) => Promise<TtlStoreUnderTest>): void {
  describe(`B10: values with a lifetime in ${name}`, () => {
    test('the last value of a key is found', async () => {
      const { ttlStore } = await create(1_000)
      await ttlStore.set('a', 'first', long)
      await ttlStore.set('a', 'zweites – ✓', long)
      expect(await ttlStore.get('a', long)).toBe('zweites – ✓')
      expect(await ttlStore.get('a', long)).toBe('zweites – ✓')
      expect(await ttlStore.get('b', long)).toBeUndefined()
    })

    test('an entry expires, and reading it extends its time', async () => {
      const { ttlStore, over } = await create(1_000)
      await ttlStore.set('a', 'text', soon)
      // On a busy machine, its time may be over before it is asked for.
      let found: string | undefined
      for (let tries = 0; found === undefined && tries < 100; tries++) {
        await ttlStore.set('b', 'text', soon)
        found = await ttlStore.get('b', long)
      }
      expect(found).toBe('text')
      await over()
      expect(await ttlStore.get('a', soon)).toBeUndefined()
      expect(await ttlStore.get('b', soon)).toBe('text')
      await over()
      expect(await ttlStore.get('b', soon)).toBeUndefined()
    })

    test('the least recently used entry is evicted, and one larger than the limit is not stored', async () => {
      const { ttlStore } = await create(100)
      for (const key of ['a', 'b', 'c']) await ttlStore.set(key, key.repeat(30), long)
      expect(await ttlStore.get('a', long)).toBe('a'.repeat(30))
      await ttlStore.set('d', 'd'.repeat(30), long)
      const found = await Promise.all(['a', 'b', 'c', 'd'].map((key) => ttlStore.get(key, long)))
      expect(found.map((text) => text?.[0])).toEqual(['a', undefined, 'c', 'd'])
      await ttlStore.set('e', 'e'.repeat(101), long)
      expect(await ttlStore.get('e', long)).toBeUndefined()
    })
  })
}
