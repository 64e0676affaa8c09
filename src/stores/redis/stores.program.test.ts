import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bucketsContract } from '../../../tests/contract/buckets.ts'
import { cacheContract } from '../../../tests/contract/cache.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { askRedis, type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { systemClock } from '../../core/clock.ts'
import type { Buckets } from '../../core/stores.ts'
import { memoryBuckets } from '../buckets.ts'
import { redisBuckets } from './buckets.ts'
import { redisCache } from './cache.ts'
import type { SharedRedis } from './connection.ts'
import { connected } from './redis.fixture.ts'
import { openRedisStores } from './stores.ts'

const start = 1_800_000_000_000

withPart('redis-server', 'B10: stores in Redis', () => {
  let server: RedisServer
  const opened: SharedRedis[] = []
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(async () => {
    for (const redis of opened) await redis[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const open = async () => {
    const redis = await connected(server.url)
    opened.push(redis)
    return redis
  }
  /** A fallback that throws, so that the tests see only what Redis counted. */
  const nobody: Buckets = {
    take() {
      throw new Error('Redis did not answer')
    },
  }

  const sharing = async () => ({ redis: await open(), local: nobody, monotonic: () => 0 })
  bucketsContract('Redis', async () => redisBuckets({ ...(await sharing()), time: 'ours' }), { cases: 20 })
  cacheContract('Redis', async (limits) => redisCache(await open(), limits, (now) => now), { cases: 20 })

  test('F8: replicas whose clocks differ share one bucket, exactly', async () => {
    const redis = await open()
    const skewed = [5_000_000, 8_600_000, 1_400_000]
    const replicas = skewed.map((now) => ({ ...redisBuckets({ redis, local: nobody, monotonic: () => now }), now }))
    const from = [{ key: 'a', perMinute: 100 }]
    const taken = await Promise.all(
      Array.from({ length: 300 }, (_, n) => {
        const replica = replicas[n % 3] as (typeof replicas)[number]
        return replica.take(from, replica.now)
      }),
    )
    expect(taken.filter(({ allowed }) => allowed)).toHaveLength(100)
  })

  test('F8: time is what the monotonic clocks of replicas count, whatever the wall clock of Redis says', async () => {
    const redis = await open()
    let now = 5_000_000
    const replica = () => redisBuckets({ redis, local: nobody, monotonic: () => now })
    const [one, other] = [replica(), replica()]
    const from = [{ key: 'a', perMinute: 2 }]
    const count = async () => [(await one.take(from, now)).allowed, (await other.take(from, now)).allowed]
    expect(await count()).toEqual([true, true])
    // Change the stored wall time, as if the wall clock had stepped by an hour.
    const clockKey = `${redis.prefix}{limits}:time`
    for (const stepMs of [-3_600_000, 3_600_000]) {
      const step = (client: Redis) => client.hincrby(clockKey, 'wall', stepMs)
      expect(await redis.ask(step)).toBeGreaterThan(0)
      expect(await count()).toEqual([false, false])
    }
    now += 55_000
    expect(await count()).toEqual([false, false])
    now += 5_000
    expect(await count()).toEqual([true, true])
    // A replica that has just started continues with the shared time.
    expect(await replica().take(from, now)).toMatchObject({ allowed: false })
  })

  test('F13: one replica finds what another has kept, and nothing that another has dropped', async () => {
    const redis = await open()
    const [one, other] = [0, 1].map(() => redisCache(redis, { maxEntries: 10, maxBytes: 1 << 20 }, (now) => now))
    const { mark } = (await one?.get('files', 'a', start)) ?? {}
    await one?.put('files', 'a', { bytes: Buffer.from('kept'), mark: mark as string, ttlMs: 1_000 }, start)
    expect((await other?.get('files', 'a', start + 1))?.bytes?.toString()).toBe('kept')
    await other?.drop('files')
    expect((await one?.get('files', 'a', start + 1))?.bytes).toBeUndefined()
  })

  test('F13: the least recently used entry is evicted, by entries and by bytes', async () => {
    const store = redisCache(await open(), { maxEntries: 3, maxBytes: 10_000 }, (now) => now)
    let now = start
    const put = async (key: string, length: number) => {
      const { mark } = await store.get('files', 'none', ++now)
      await store.put('files', key, { bytes: Buffer.alloc(length), mark, ttlMs: 60_000 }, now)
    }
    const has = async (key: string) => (await store.get('files', key, ++now)).bytes !== undefined
    for (const key of ['a', 'b', 'c']) await put(key, 100)
    expect(await has('a')).toBe(true)
    await put('d', 100)
    expect([await has('a'), await has('b'), await has('c'), await has('d')]).toEqual([true, false, true, true])
    await put('e', 9_200)
    expect(await has('e')).toBe(true)
    expect(store.usage()).toMatchObject({ entries: 2 })
    expect(store.usage().bytes).toBeLessThanOrEqual(10_000)
    await put('f', 20_000)
    expect([await has('f'), await has('e')]).toEqual([false, true])
  })
})

withPart('redis-server', 'B10: a Redis that goes and comes back', () => {
  test('stopped: limits are counted locally, nothing is cached; started again: everything is shared again', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    const buckets = redisBuckets({ redis, local: memoryBuckets(), monotonic: () => start })
    const store = redisCache(redis, { maxEntries: 10, maxBytes: 1 << 20 }, (now) => now)
    const from = [{ key: 'a', perMinute: 2 }]
    expect(await buckets.take(from, start)).toEqual({ allowed: true })
    const heard: boolean[] = []
    using _ = redis.onChange((up) => heard.push(up))

    await server.stop()
    await until(() => !redis.up, { what: 'the loss' })
    const local = [await buckets.take(from, start), await buckets.take(from, start), await buckets.take(from, start)]
    expect(local.map(({ allowed }) => allowed)).toEqual([true, true, false])
    const { mark } = await store.get('files', 'a', start)
    await store.put('files', 'a', { bytes: Buffer.from('lost'), mark, ttlMs: 60_000 }, start)

    await server.start()
    await until(() => redis.up, { what: 'the return' })
    expect((await store.get('files', 'a', start)).bytes).toBeUndefined()
    expect(await buckets.take(from, start)).toEqual({ allowed: true })
    expect(heard).toEqual([false, true])
  })

  test('F13: entries that could not be dropped while Redis was suspended are not returned afterwards', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    const store = redisCache(redis, { maxEntries: 10, maxBytes: 1 << 20 }, (now) => now)
    const { mark } = await store.get('files', 'a', start)
    await store.put('files', 'a', { bytes: Buffer.from('old'), mark, ttlMs: 60_000 }, start)
    server.freeze()
    // Redis is frozen: after these three timeouts it counts as down, so the drop below cannot be sent.
    await Promise.all([1, 2, 3].map(() => redis.ask((client) => client.get('a'))))
    await store.drop('files')
    server.thaw()
    await until(() => redis.up, { what: 'the return' })
    expect((await store.get('files', 'a', start)).bytes).toBeUndefined()
  })

  test('suspended: calls wait a moment, then continue without it, and use it again when it answers', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    server.freeze()
    await Promise.all([1, 2, 3].map(() => redis.ask((client) => client.get('a'))))
    expect(redis.up).toBe(false)
    const waits = []
    for (let attempt = 0; attempt < 10; attempt++) {
      const start = performance.now()
      expect(await redis.ask((client) => client.get('a'))).toBeUndefined()
      waits.push(performance.now() - start)
    }
    // Check the shortest wait, because a busy machine delays single attempts.
    expect(Math.min(...waits)).toBeLessThan(100)
    server.thaw()
    await until(() => redis.up, { what: 'the return' })
  })

  test('a response that arrived while this process was busy is read, however long that took', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    // From here, the event loop runs timers before it reads responses.
    setImmediate(() => {
      resolve(redis.ask((client) => client.set('a', 'b')))
      const end = performance.now() + 700
      while (performance.now() < end);
    })
    expect(await promise).toBe('OK')
  })

  test('an unreachable Redis delays no call', async () => {
    const server = await startRedis()
    await server[Symbol.asyncDispose]()
    const { connectRedis } = await import('./connection.ts')
    await using redis = await connectRedis({ url: server.url, clock: systemClock, log: createKeptLog() })
    expect(redis.up).toBe(false)
    expect(await redis.ask((client) => client.get('a'))).toBeUndefined()
  })
})

withPart('redis-server', 'B10: the secret that replicas share in Redis', () => {
  /** Starts a replica that has its own state folder. */
  const replica = async (url: string, memory: { secret?: string | undefined } = {}) => {
    const secret = {
      own: async () => randomUUID(),
      read: async () => memory.secret,
      write: async (found: string) => void Object.assign(memory, { secret: found }),
    }
    const limits = { maxEntries: 10, maxBytes: 1_000 }
    const own = { local: memoryBuckets(), limits, secret }
    const stores = await openRedisStores({ url, clock: systemClock, log: createKeptLog(), ...own })
    return { ...stores, memory }
  }
  type Replica = Awaited<ReturnType<typeof replica>>
  const verifies = (one: Replica, other: Replica) => one.membership.verify(other.membership.sign('text')) === 'text'
  const agree = (one: Replica, other: Replica) => verifies(one, other) && verifies(other, one)
  const secretOf = (server: RedisServer) => askRedis(server, (client) => client.get('toolway:secret:fleet'))

  test('is restored by a running replica after Redis lost its data, so that a new one uses it', async () => {
    await using server = await startRedis()
    await using running = await replica(server.url)
    const before = await secretOf(server)
    await askRedis(server, (client) => client.flushall())
    await until(async () => (await secretOf(server)) !== null, { what: 'the secret in Redis' })
    await using added = await replica(server.url)
    expect(await secretOf(server)).toBe(before)
    expect(agree(running, added)).toBe(true)

    await server.stop()
    await until(() => !running.redis.up, { what: 'the loss' })
    await server.start()
    await until(async () => (await secretOf(server)) === before, { what: 'the secret after a restart of Redis' })
  })

  test('is restored by a replica that remembers it, even if no other replica has noticed the loss', async () => {
    await using server = await startRedis()
    await using running = await replica(server.url)
    await askRedis(server, (client) => client.flushall())
    await using restarted = await replica(server.url, { ...running.memory })
    expect(agree(running, restarted)).toBe(true)
  })

  test('is replaced in a running replica if a new replica was first, and what was sealed before can still be opened', async () => {
    await using server = await startRedis()
    await using running = await replica(server.url)
    const held = running.seal.close('text', 'a caller')
    await askRedis(server, (client) => client.set('toolway:secret:fleet', randomUUID()))
    await using added = await replica(server.url)
    await until(() => agree(running, added), { what: 'one secret' })
    expect(running.seal.open(held, 'a caller')).toBe('text')
    expect(running.memory.secret).toBe(added.memory.secret)
  })

  test('is used by a replica that started while Redis was down, as soon as it is back', async () => {
    await using server = await startRedis()
    await using running = await replica(server.url)
    await server.stop()
    await until(() => !running.redis.up, { what: 'the loss' })
    await using added = await replica(server.url)
    expect(verifies(running, added)).toBe(false)
    await server.start()
    await until(() => agree(running, added), { what: 'one secret' })
  })
})
