import { hash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { locksContract } from '../../../tests/contract/locks.ts'
import { ttlStoreContract } from '../../../tests/contract/ttl-store.ts'
import { vaultContract } from '../../../tests/contract/vault.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { type RedisServer, startRedis } from '../../../tests/fixtures/redis.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { withPart } from '../../../tests/fixtures/with-part.ts'
import { systemClock as clock } from '../../core/clock.ts'
import { createSeal } from '../../lib/seal.ts'
import { memoryBuckets } from '../buckets.ts'
import { derivedSecret, replicaSecret } from '../secret-file.ts'
import type { SharedRedis } from './connection.ts'
import { connected, redisWith } from './redis.fixture.ts'
import { openRedisStores, type RedisStores, redisTtlStore } from './stores.ts'
import { redisLocks, redisVault } from './vault.ts'

const key = 'a key of all replicas, and of them only'
const log = createKeptLog()

withPart('redis-server', 'B10: what replicas own together', () => {
  const open = new AsyncDisposableStack()
  let server: RedisServer
  beforeAll(async () => {
    server = open.use(await startRedis())
  })
  afterAll(() => open.disposeAsync())
  const connect = async (): Promise<SharedRedis> => open.use(await connected(server.url))

  locksContract('Redis', async () => {
    const redis = await connect()
    return [redisLocks({ redis, clock, log }), redisLocks({ redis, clock, log })]
  })

  vaultContract('Redis', async () => {
    const redis = await connect()
    const at = `${redis.prefix}vault`
    return {
      vault: redisVault({ redis, key, clock }),
      again: (other) => redisVault({ redis, key: other ?? key, clock }),
      records: async () => new Map(Object.entries((await redis.ask((client) => client.hgetall(at))) ?? {})),
      plant: async (name, record) => void (await redis.ask((client) => client.hset(at, name, record))),
    }
  })

  ttlStoreContract('Redis', async (most) => {
    const redis = await connect()
    return {
      ttlStore: redisTtlStore(redis, clock, most),
      over: async () => void (await until(async () => !(await leaves(redis)), { what: 'the end of its time' })),
    }
  })

  /** Whether a replica can open what another has sealed. */
  const opens = (one: RedisStores, other: RedisStores) => one.seal.open(other.seal.close('text', 'a'), 'a') === 'text'

  /** Whether any key expires within a second. */
  const leaves = async (redis: SharedRedis): Promise<boolean | undefined> =>
    redis.ask(async (client) => {
      const left = await Promise.all((await client.keys(`${redis.prefix}*`)).map((name) => client.pttl(name)))
      return left.some((ms) => ms < 1_000)
    })

  const lockKey = (redis: SharedRedis, name: string) => `${redis.prefix}lock:${hash('sha256', name)}`

  test('B6: the key is never in Redis, and neither is what is made of it', async () => {
    const limits = { maxEntries: 10, maxBytes: 1_000 }
    const around = {
      url: server.url,
      limits,
      local: memoryBuckets(),
      clock,
      log,
      secret: { own: async () => 'own', read: async () => undefined, write: async () => {} },
    }
    await using one = await openRedisStores({ ...around, key })
    await using other = await openRedisStores({ ...around, key })
    expect(opens(other, one)).toBe(true)
    await one.safe?.vault.write('a', 'first')
    expect(await other.safe?.vault.read('a')).toBe('first')
    const all = await one.redis.ask(async (client) => {
      const names = await client.keys('toolway:*')
      return Promise.all(names.map(async (name) => [name, (await client.dump(name)) ?? '']))
    })
    expect(all?.length).toBeGreaterThan(0)
    for (const secret of [key, derivedSecret(key, 'fleet')]) expect(JSON.stringify(all)).not.toContain(secret)
    await using without = await openRedisStores(around)
    expect(without.safe).toBeUndefined()
    expect(opens(without, one)).toBe(false)
  })

  test('B10: a replica that restarts while Redis is down has the secret of the others', async () => {
    await using folder = await temporaryFolder()
    const limits = { maxEntries: 10, maxBytes: 1_000 }
    const secret = { ...replicaSecret(folder.path), own: async () => 'own' }
    const around = { limits, local: memoryBuckets(), clock, log, secret }
    const down = 'redis://127.0.0.1:1'
    await using first = await openRedisStores({ ...around, url: down })
    expect(createSeal('own').open(first.seal.close('text', 'a'), 'a')).toBe('text')
    await using before = await openRedisStores({ ...around, url: server.url })
    await using after = await openRedisStores({ ...around, url: down })
    expect([opens(after, before), opens(before, after)]).toEqual([true, true])
    expect(opens(before, first)).toBe(false)
  })

  test('B10: a lock outlives its lease while it is held, and its holder not at all', async () => {
    const redis = await connect()
    // Redis measures real time, and on a busy machine this process may not run for a while.
    const [one, other] = [0, 1].map(() => redisLocks({ redis, clock, log, maxWaitMs: 3_000 }, 2_000))
    const holding = await one?.hold('grant')
    await expect(other?.hold('grant')).rejects.toMatchObject({ code: 'OVERLOADED', details: { unsent: true } })
    await holding?.[Symbol.asyncDispose]()
    // A holder that died leaves only its lease, which then expires.
    await redis.ask((client) => client.set(lockKey(redis, 'grant'), 'somebody', 'PX', 60))
    await using _ = await other?.hold('grant')
  })

  test('B10: an expired lock is not released if another process holds it now', async () => {
    const redis = await connect()
    const locks = redisLocks({ redis, clock, log })
    const holding = await locks.hold('grant')
    await redis.ask((client) => client.set(lockKey(redis, 'grant'), 'another', 'PX', 60_000))
    await holding[Symbol.asyncDispose]()
    expect(await redis.ask((client) => client.get(lockKey(redis, 'grant')))).toBe('another')
  })

  test('B10: a waiting process polls at intervals', async () => {
    const redis = await connect()
    let asked = 0
    const counting = redisWith(redis, {
      ask(command) {
        asked++
        return redis.ask(command)
      },
    })
    await redis.ask((client) => client.set(lockKey(redis, 'grant'), 'somebody', 'PX', 300))
    await using _ = await redisLocks({ redis: counting, clock, log }).hold('grant')
    expect(asked).toBeLessThan(12)
  })
})

withPart('redis-server', 'B10: a Redis that is away', () => {
  test('B6: while Redis is down, reads fail instead of returning nothing, and writes wait for it', async () => {
    await using server = await startRedis()
    await using redis = await connected(server.url)
    const vault = redisVault({ redis, key, clock })
    await vault.write('a', 'first')
    await server.stop()
    await until(() => !redis.up, { what: 'the loss' })
    const away = {
      code: 'OVERLOADED',
      message: expect.stringContaining('stores.redis'),
      details: { unsent: true },
    }
    await expect(vault.read('a')).rejects.toMatchObject(away)
    await expect(vault.keys()).rejects.toMatchObject(away)
    await expect(vault.remove('a')).rejects.toMatchObject(away)
    await expect(redisLocks({ redis, clock, log }).hold('a')).rejects.toMatchObject(away)
    await expect(redisVault({ redis, key, clock, maxWaitMs: 0 }).write('a', 'b')).rejects.toMatchObject(away)
    const ttlStore = redisTtlStore(redis, clock)
    await ttlStore.set('a', 'text', 1_000)
    expect(await ttlStore.get('a', 1_000)).toBeUndefined()
    const written = vault.write('a', 'second')
    await server.start()
    await written
    expect(await vault.read('a')).toBe('second')
    await using _ = await redisLocks({ redis, clock, log }).hold('a')
  })
})
