import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CacheLimits, CacheStore, Mark } from '../../src/core/stores.ts'
import { runs } from '../fixtures/runs.ts'

const start = 1_800_000_000_000
const roomy: CacheLimits = { maxEntries: 10_000, maxBytes: 1 << 26 }
const bytesOf = (text: string) => Buffer.from(text)

/** What every place for results must do. `create` gives an empty one. */
export function cacheContract(
  name: string,
  create: (limits: CacheLimits) => CacheStore | Promise<CacheStore>,
  { cases = runs(60, 200).numRuns } = {},
): void {
  describe(`F13: results in ${name}`, () => {
    const markOf = async (store: CacheStore, group: string, now = start): Promise<Mark> =>
      (await store.get(group, 'no such key', now)).mark
    const put = async (store: CacheStore, group: string, key: string, text: string, ttlMs = 1_000, now = start) =>
      store.put(group, key, { bytes: bytesOf(text), mark: await markOf(store, group, now), ttlMs }, now)
    const textIn = async (store: CacheStore, group: string, key: string, now = start): Promise<string | undefined> =>
      (await store.get(group, key, now)).bytes?.toString()

    test('a stored result is found, byte for byte, until it expires', async () => {
      const store = await create(roomy)
      const odd = Buffer.from([0, 255, 34, 92, 0xc3, 0x28])
      await store.put('files', 'a', { bytes: odd, mark: await markOf(store, 'files'), ttlMs: 1_000 }, start)
      expect((await store.get('files', 'a', start)).bytes).toEqual(odd)
      expect((await store.get('files', 'a', start + 999)).bytes).toEqual(odd)
      expect((await store.get('files', 'a', start + 1_000)).bytes).toBeUndefined()
      expect((await store.get('files', 'a', start)).bytes).toBeUndefined()
    })

    test('a later result replaces an earlier one, with its own expiry', async () => {
      const store = await create(roomy)
      await put(store, 'files', 'a', 'first', 5_000)
      await put(store, 'files', 'a', 'second', 1_000, start + 500)
      expect(await textIn(store, 'files', 'a', start + 500)).toBe('second')
      expect(await textIn(store, 'files', 'a', start + 1_500)).toBeUndefined()
    })

    test('an empty answer is an answer', async () => {
      const store = await create(roomy)
      await put(store, 'files', 'a', '')
      expect(await textIn(store, 'files', 'a')).toBe('')
    })

    test('a result with a lifetime of zero is not stored, and removes the earlier one', async () => {
      const store = await create(roomy)
      await put(store, 'files', 'a', 'old')
      await put(store, 'files', 'a', 'new', 0)
      expect(await textIn(store, 'files', 'a')).toBeUndefined()
    })

    test('groups do not touch each other, whatever their keys are', async () => {
      const store = await create(roomy)
      await put(store, 'a', 'b c', 'one')
      await put(store, 'a b', 'c', 'two')
      expect(await textIn(store, 'a', 'b c')).toBe('one')
      expect(await textIn(store, 'a b', 'c')).toBe('two')
      await store.drop('a')
      expect(await textIn(store, 'a', 'b c')).toBeUndefined()
      expect(await textIn(store, 'a b', 'c')).toBe('two')
    })

    test('a result requested before its group was dropped is not stored', async () => {
      const store = await create(roomy)
      const before = await markOf(store, 'files')
      await store.drop('files')
      await store.put('files', 'a', { bytes: bytesOf('late'), mark: before, ttlMs: 1_000 }, start)
      expect(await textIn(store, 'files', 'a')).toBeUndefined()
      expect(await markOf(store, 'files')).not.toBe(before)
      await put(store, 'files', 'a', 'fresh')
      expect(await textIn(store, 'files', 'a')).toBe('fresh')
    })

    test('clear removes everything, also what is stored later with an earlier mark', async () => {
      const store = await create(roomy)
      const before = await markOf(store, 'files')
      await put(store, 'other', 'a', 'kept')
      await store.clear()
      await store.put('files', 'a', { bytes: bytesOf('late'), mark: before, ttlMs: 1_000 }, start)
      expect(await textIn(store, 'other', 'a')).toBeUndefined()
      expect(await textIn(store, 'files', 'a')).toBeUndefined()
    })

    const step = fc.record({
      wait: fc.constantFrom(0, 0, 1, 499, 500, 501, 2_000),
      does: fc.constantFrom('get', 'get', 'get', 'put', 'put', 'put late', 'drop', 'clear'),
      group: fc.constantFrom('files', 'mail'),
      key: fc.constantFrom('a', 'b', 'c'),
      ttlMs: fc.constantFrom(0, 1, 500, 1_000),
    })

    test('any order of putting, waiting, dropping and getting gives what a plain list of answers gives', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
          const store = await create(roomy)
          const model = new Map<string, { text: string; expiresAt: number }>()
          const late = new Map<string, Mark>()
          let now = start
          let puts = 0
          for (const { wait, does, group, key, ttlMs } of steps) {
            now += wait
            const at = `${group} ${key}`
            const { bytes, mark } = await store.get(group, key, now)
            const known = model.get(at)
            assert.equal(bytes?.toString(), known && now < known.expiresAt ? known.text : undefined)
            if (does === 'put') {
              const text = `answer ${++puts}`
              await store.put(group, key, { bytes: bytesOf(text), mark, ttlMs }, now)
              model.set(at, { text, expiresAt: now + ttlMs })
            } else if (does === 'put late') {
              const old = late.get(group)
              if (old !== undefined) await store.put(group, key, { bytes: bytesOf('late'), mark: old, ttlMs }, now)
            } else if (does === 'drop') {
              late.set(group, mark)
              await store.drop(group)
              for (const known of [...model.keys()]) if (known.startsWith(`${group} `)) model.delete(known)
            } else if (does === 'clear') {
              for (const one of ['files', 'mail']) late.set(one, await markOf(store, one, now))
              await store.clear()
              model.clear()
            }
          }
        }),
        { numRuns: cases },
      )
    })
  })
}
