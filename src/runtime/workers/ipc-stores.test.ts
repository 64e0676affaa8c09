import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { bucketsContract } from '../../../tests/contract/buckets.ts'
import { cacheContract } from '../../../tests/contract/cache.ts'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
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

describe('B10, F8: calls of high limits are leased', () => {
  const perMinute = 6_000
  const from = [{ key: 'a', perMinute }]
  const workersOf = (count: number) => {
    const services = new PrimaryServices(systemClock)
    const clock = createManualClock()
    const connections = Array.from({ length: count }, (_, n) => connect(services, `${n}`))
    const messages = connections.map((rpc) => vi.spyOn(rpc, 'request'))
    const workers = connections.map((rpc) => ipcBuckets(rpc, noFallback, clock))
    return { clock, workers, requests: () => messages.reduce((sum, { mock }) => sum + mock.calls.length, 0) }
  }

  test('so that most calls ask nothing of the primary', async () => {
    const { workers, requests } = workersOf(1)
    const many = [{ key: 'a', perMinute: 1_000_000 }]
    for (let n = 0; n < 1_000; n++) expect(await workers[0]?.take(many, start)).toEqual({ allowed: true })
    expect(requests()).toBe(1)
    await Promise.all(Array.from({ length: 1_000 }, () => workers[0]?.take(many, start + 101)))
    expect(requests()).toBe(2)
  })

  test('all calls of a limit are allowed, and not one more', async () => {
    const { workers } = workersOf(3)
    const calls = Array.from({ length: 7_000 }, (_, n) => workers[n % 3]?.take(from, start + (n % 7)))
    const taken = await Promise.all(calls)
    expect(taken.filter((one) => one?.allowed)).toHaveLength(perMinute)
  })

  test('what a worker does not use is available to others after 100 ms', async () => {
    const { clock, workers } = workersOf(2)
    await workers[0]?.take(from, start)
    clock.advance(101)
    const taken = await Promise.all(Array.from({ length: 6_000 }, () => workers[1]?.take(from, start + 200)))
    expect(taken.filter((one) => one?.allowed)).toHaveLength(perMinute - 1)
  })

  test('no 60 s have more calls than the limit', async () => {
    const rush = fc.record({
      worker: fc.integer({ min: 0, max: 2 }),
      calls: fc.integer({ min: 1, max: 400 }),
      pauseMs: fc.constantFrom(0, 1, 50, 99, 100, 101, 1_000, 9_000),
    })
    const limits = fc.constantFrom(1_200, 1_500, 6_000)
    await fc.assert(
      fc.asyncProperty(limits, fc.array(rush, { maxLength: 60, size: 'max' }), async (limit, rushes) => {
        const { clock, workers } = workersOf(3)
        const allowed: number[] = []
        let now = start
        for (const { worker, calls, pauseMs } of rushes) {
          now += pauseMs
          clock.advance(pauseMs)
          const taken = Array.from({ length: calls }, () =>
            workers[worker]?.take([{ key: 'a', perMinute: limit }], now),
          )
          for (const one of await Promise.all(taken)) if (one?.allowed) allowed.push(now)
        }
        expect(allowed.filter((at, index) => at - (allowed[index - limit] ?? -60_000) < 60_000)).toEqual([])
      }),
      { numRuns: 20 },
    )
  })
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
