import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cacheContract } from '../../tests/contract/cache.ts'
import { settledHeap } from '../../tests/fixtures/memory.ts'
import { runs } from '../../tests/fixtures/runs.ts'
import type { CacheLimits, CacheLookup, CacheStore } from '../core/stores.ts'
import { memoryCache } from './cache.ts'

cacheContract('memory', (limits) => memoryCache(limits))

const start = 1_800_000_000_000

/** A memory cache with synchronous helpers for the group `files`. */
function open(limits: CacheLimits) {
  const store: CacheStore = memoryCache(limits)
  const get = (key: string, now = start) => (store.get('files', key, now) as CacheLookup).bytes
  const put = (key: string, length = 100, { ttlMs = 1_000, now = start } = {}) =>
    void store.put('files', key, { bytes: Buffer.alloc(length, key), mark: mark(), ttlMs }, now)
  const mark = () => (store.get('files', '', start) as CacheLookup).mark
  return { store, get, put }
}

test('F13: the least recently used entry is evicted', () => {
  const { store, get, put } = open({ maxEntries: 3, maxBytes: 1 << 20 })
  for (const key of ['a', 'b', 'c']) put(key)
  get('a')
  put('d')
  expect(['a', 'b', 'c', 'd'].map((key) => get(key) !== undefined)).toEqual([true, false, true, true])
  expect(store.usage()).toMatchObject({ entries: 3, evicted: 1 })
})

test('V6: the results of one owner make room for each other before they use up half of the cache', () => {
  const { store, get } = open({ maxEntries: 4, maxBytes: 1 << 20 })
  const put = (key: string, owner?: string) => {
    const { mark } = store.get('files', '', start) as CacheLookup
    void store.put('files', key, { bytes: Buffer.alloc(100), mark, ttlMs: 1_000, owner }, start)
  }
  put('b', 'bert')
  put('c')
  put('a1', 'anna')
  put('a2', 'anna')
  get('a1')
  put('a3', 'anna')
  expect(['b', 'c', 'a1', 'a2', 'a3'].map((key) => get(key) !== undefined)).toEqual([true, true, true, false, true])
  expect(store.usage()).toMatchObject({ entries: 4, evicted: 1, largest: expect.any(Number) })
  void store.drop('files')
  expect(store.usage()).toMatchObject({ entries: 0, largest: 0 })
})

test('F13: removing an expired entry does not count as an eviction', () => {
  const { store, put } = open({ maxEntries: 1, maxBytes: 1 << 20 })
  put('a')
  put('b', 100, { now: start + 1_000 })
  expect(store.usage()).toMatchObject({ entries: 1, evicted: 0 })
})

test('F13: one that would not fit at all leaves the others alone', () => {
  const { store, get, put } = open({ maxEntries: 10, maxBytes: 10_000 })
  put('a')
  put('b', 10_000)
  expect(get('a')).toBeDefined()
  expect(get('b')).toBeUndefined()
  expect(store.usage()).toMatchObject({ entries: 1, evicted: 0 })
})

test('F13: limits that are lowered count from the next answer on', () => {
  const limits = { maxEntries: 10, maxBytes: 1 << 20 }
  const { store, get, put } = open(limits)
  for (const key of ['a', 'b', 'c']) put(key)
  limits.maxEntries = 2
  put('d')
  expect(store.usage().entries).toBe(2)
  expect(get('d')).toBeDefined()
})

test('F13: a clock that is set back keeps nothing for longer', () => {
  const { get, put } = open({ maxEntries: 10, maxBytes: 1 << 20 })
  put('a')
  expect(get('a', start - 3_600_000)).toBeUndefined()
})

test('F13: a kept answer keeps nothing else in memory, and is not changed from outside', () => {
  const { store } = open({ maxEntries: 10, maxBytes: 1 << 20 })
  const line = Buffer.alloc(1 << 20, 'x')
  const { mark } = store.get('files', 'a', start) as CacheLookup
  void store.put('files', 'a', { bytes: line.subarray(10, 20), mark, ttlMs: 1_000 }, start)
  line.fill('y')
  const { bytes } = store.get('files', 'a', start) as CacheLookup
  expect(bytes?.toString()).toBe('xxxxxxxxxx')
  expect(bytes?.buffer.byteLength).toBe(10)
})

test('F13: the counted bytes are at least the memory in use', async () => {
  const { store, put } = open({ maxEntries: 100_000, maxBytes: 1 << 30 })
  const used = async () => (await settledHeap()) + process.memoryUsage().arrayBuffers
  const before = await used()
  for (let number = 0; number < 20_000; number++) put(`${'k'.repeat(100)}${number}`, 200)
  expect((await used()) - before).toBeLessThan(store.usage().bytes)
  expect(store.usage().entries).toBe(20_000)
})

const step = fc.record({
  does: fc.constantFrom('put', 'put', 'put', 'get', 'get', 'drop'),
  key: fc.constantFrom(...'abcdefgh'),
  group: fc.constantFrom('files', 'mail'),
  length: fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.constantFrom(9_000, 20_000)),
  wait: fc.constantFrom(0, 0, 0, 300, 1_000),
})

test('F13: the bounds hold after every step, and the content equals that of a simple model', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 600, max: 12_000 }),
      fc.array(step, { maxLength: 80, size: 'max' }),
      (maxEntries, maxBytes, steps) => {
        const store = memoryCache({ maxEntries, maxBytes })
        /** The expected content, oldest first. Sizes are those that the store reports for a single entry. */
        let model: { at: string; size: number; expiresAt: number }[] = []
        let now = start
        for (const { does, key, group, length, wait } of steps) {
          now += wait
          const at = `${group} ${key}`
          const found = store.get(group, key, now) as CacheLookup
          const known = model.find((item) => item.at === at)
          const fresh = known !== undefined && now < known.expiresAt
          assert.equal(found.bytes !== undefined, fresh)
          model = model.filter((item) => item.at !== at)
          if (known && fresh) model.push(known)
          if (does === 'drop') {
            void store.drop(group)
            model = model.filter((item) => !item.at.startsWith(`${group} `))
          }
          if (does === 'put') {
            const answer = { bytes: Buffer.alloc(length), mark: found.mark, ttlMs: 1_000 }
            const size = sizeAlone(key, length)
            void store.put(group, key, answer, now)
            model = model.filter((item) => item.at !== at)
            if (size <= maxBytes) {
              const total = () => model.reduce((sum, item) => sum + item.size, size)
              while (model.length >= maxEntries || total() > maxBytes) model.shift()
              model.push({ at, size, expiresAt: now + 1_000 })
            }
          }
          const { entries, bytes } = store.usage()
          // Plain comparisons: forty thousand calls of `expect` take seconds.
          assert.equal(entries, model.length)
          assert.equal(
            bytes,
            model.reduce((sum, item) => sum + item.size, 0),
          )
          assert.ok(entries <= maxEntries && bytes <= maxBytes)
        }
      },
    ),
    runs(40, 5_000),
  )
})

function sizeAlone(key: string, length: number): number {
  const store = memoryCache({ maxEntries: 1, maxBytes: 1 << 30 })
  const { mark } = store.get('files', key, start) as CacheLookup
  void store.put('files', key, { bytes: Buffer.alloc(length), mark, ttlMs: 1_000 }, start)
  return store.usage().bytes
}
