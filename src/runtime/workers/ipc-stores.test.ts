import { afterAll, expect, test } from 'vitest'
import { bucketsContract } from '../../../tests/contract/buckets.ts'
import { cacheContract } from '../../../tests/contract/cache.ts'
import { systemClock } from '../../core/clock.ts'
import type { Buckets } from '../../core/stores.ts'
import { memoryBuckets } from '../../stores/buckets.ts'
import { ipcBuckets, ipcCache, ipcTtlStore, PrimaryServices } from './ipc-stores.ts'
import { connectTo, connectToPrimary } from './rpc.fixture.ts'

const start = 1_800_000_000_000
const roomy = { maxEntries: 100, maxBytes: 1 << 26 }
const open = new DisposableStack()
afterAll(() => open.dispose())
const connect = (services?: PrimaryServices, name?: string) => open.use(connectToPrimary(services, name)).rpc

/** Throws, so that the contract sees only what the other process counted. */
const noFallback: Buckets = {
  take() {
    throw new Error('the primary did not respond')
  },
}

bucketsContract('another process', () => ipcBuckets(connect(), noFallback), { cases: 20 })
cacheContract('another process', (limits) => ipcCache(connect(), limits), { cases: 20 })

test('B10: values are shared between workers, and lost without the primary', async () => {
  const services = new PrimaryServices(systemClock)
  const [one, other] = ['a', 'b'].map((name) => ipcTtlStore(connect(services, name)))
  await one?.set('a', 'a conversation', 1_000)
  await one?.set('b', 'x'.repeat(2 * 1024 * 1024), 1_000)
  expect(await one?.get('a', 1_000)).toBe('a conversation')
  expect(await other?.get('a', 1_000)).toBe('a conversation')
  expect(await other?.get('b', 1_000)).toBeUndefined()
  using silent = connectTo({ keepsakeOf: () => new Promise(() => {}) })
  expect(await ipcTtlStore(silent.rpc).get('a', 1_000)).toBeUndefined()
})

test('B10, F8: workers share one bucket, exactly', async () => {
  const services = new PrimaryServices(systemClock)
  const workers = ['a', 'b', 'c'].map((name) => ipcBuckets(connect(services, name), noFallback))
  const from = [{ key: 'a', perMinute: 100 }]
  const taken = await Promise.all(Array.from({ length: 300 }, (_, n) => workers[n % 3]?.take(from, start)))
  expect(taken.filter((one) => one?.allowed)).toHaveLength(100)
})

test('B10, F8: while the primary does not respond, each worker counts alone', async () => {
  using silent = connectTo({ take: () => new Promise(() => {}) })
  const buckets = ipcBuckets(silent.rpc, memoryBuckets())
  const taken = await Promise.all(Array.from({ length: 5 }, () => buckets.take([{ key: 'a', perMinute: 3 }], start)))
  expect(taken.filter(({ allowed }) => allowed)).toHaveLength(3)
  expect(silent.rpc.up).toBe(false)
})

test('B10, F13: cached results are shared between workers, and dropped for all', async () => {
  const services = new PrimaryServices(systemClock)
  const [one, other] = ['a', 'b'].map((name) => ipcCache(connect(services, name), roomy))
  const { mark } = (await one?.get('files', 'a', start)) ?? { mark: '' }
  await one?.put('files', 'a', { bytes: Buffer.from('kept'), mark, ttlMs: 1_000 }, start)
  expect((await other?.get('files', 'a', start + 1))?.bytes?.toString()).toBe('kept')
  await other?.drop('files')
  expect((await one?.get('files', 'a', start + 1))?.bytes).toBeUndefined()
})

test('B10, F13: without the primary nothing is cached, and nothing fails', async () => {
  using silent = connectTo({ get: () => new Promise(() => {}) })
  const store = ipcCache(silent.rpc, roomy)
  const { mark, bytes } = await store.get('files', 'a', start)
  expect(bytes).toBeUndefined()
  await store.put('files', 'a', { bytes: Buffer.from('x'), mark, ttlMs: 1_000 }, start)
  expect(store.usage().entries).toBe(0)
})

test('F13: a result that is too large for the channel is not cached, and removes the one it replaces', async () => {
  const store = ipcCache(connect(), roomy)
  const put = async (bytes: Buffer) => {
    const { mark } = await store.get('files', 'a', start)
    await store.put('files', 'a', { bytes, mark, ttlMs: 1_000 }, start)
  }
  await put(Buffer.from('small'))
  expect(store.usage().entries).toBe(1)
  await put(Buffer.alloc(2 * 1024 * 1024))
  expect((await store.get('files', 'a', start)).bytes).toBeUndefined()
  expect(store.usage().entries).toBe(0)
})
