import { randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits, TtlStore } from '../../core/stores.ts'
import { createRotatingSeal, createSeal } from '../../lib/seal.ts'
import { derivedSecret, type ReplicaSecret } from '../secret-file.ts'
import { createRoom, ttlStoreBytes } from '../ttl-store.ts'
import { redisBuckets } from './buckets.ts'
import { redisCache } from './cache.ts'
import { RedisMembership, type RedisMembershipOptions, redisPubSub } from './cluster.ts'
import { connectRedis, isUp, type SharedRedis } from './connection.ts'
import { redisSafe } from './vault.ts'

export type RedisStores = Awaited<ReturnType<typeof openRedisStores>>

export interface RedisStoresOptions {
  readonly url: string
  /** The configured key that all replicas share. It protects sealed data from anyone who can read Redis. */
  readonly key?: string | undefined
  readonly limits: CacheLimits
  readonly local: Buckets
  readonly workers?: RedisMembershipOptions['workers']
  readonly secret: ReplicaSecret
  readonly clock: Clock
  readonly log: Log
}

/** The stores that all replicas share (B10). */
export async function openRedisStores(options: RedisStoresOptions) {
  const { url, key, limits, local, workers, clock, log } = options
  await using open = new AsyncDisposableStack()
  const redis = open.use(await connectRedis({ url, clock, log }))
  await isUp(redis, clock)
  const seal =
    key === undefined ? open.use(await openSharedSeal(redis, options)) : createSeal(derivedSecret(key, 'fleet'))
  const membership = open.use(new RedisMembership({ redis, clock, seal, workers }))
  const pubSub = open.use(redisPubSub({ redis, self: membership.self, seal, log }))
  const running = open.move()
  return {
    redis,
    buckets: redisBuckets({ redis, local, monotonic: () => clock.monotonic() }),
    cache: redisCache(redis, limits, () => clock.now()),
    membership,
    pubSub,
    ttlStore: redisTtlStore(redis, clock),
    /** The safe for OAuth grants; undefined if no key is configured to seal them. */
    safe: key === undefined ? undefined : redisSafe({ redis, key, clock, log }),
    /** Seals the values that callers keep for Toolway. All replicas can open them. */
    seal: { replica: membership.self, close: seal.close, open: seal.open },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** How often a replica reads the shared secret, and restores it if Redis has lost its data. */
const readSecretMs = 1_000

/**
 * Opens a seal with the secret that replicas share in Redis; the first replica creates it. Whenever Redis has lost the
 * secret, a replica that knows it writes it again. A replica that finds another secret changes to that one.
 */
async function openSharedSeal(redis: SharedRedis, { secret, clock, log }: RedisStoresOptions) {
  const key = `${redis.prefix}secret:fleet`
  const previous = await secret.read().catch((error: Error) => {
    log.warn({ err: error }, 'the stored copy of the shared secret is not used')
    return undefined
  })
  const readOrRestore = (known = randomBytes(32).toString('base64url')) =>
    redis.ask(async (client) => {
      const stored = await client.get(key)
      if (stored !== null) return stored
      return (await client.set(key, known, 'NX')) === 'OK' ? known : ((await client.get(key)) ?? known)
    })
  const remember = (found: string) =>
    secret.write(found).catch((error: Error) => {
      const sentence =
        'the shared secret could not be stored, so it is not available if Redis is down at the next start'
      log.warn({ err: error }, sentence)
    })

  const found = await readOrRestore(previous)
  if (found !== undefined) await remember(found)
  let shared = found ?? previous
  if (shared === undefined)
    log.warn({}, 'Redis was unavailable at startup: data sealed by other replicas cannot be opened until it is back')
  const seal = createRotatingSeal(shared ?? (await secret.own()))
  let ended = false
  const readLater = () => clock.after(readSecretMs, () => void next(), { promptly: true })
  const next = async () => {
    const latest = await readOrRestore(shared)
    if (ended) return
    timer[Symbol.dispose]()
    timer = readLater()
    if (latest === undefined || latest === shared) return
    if (shared !== undefined) log.warn({}, 'Redis has lost its data: changed to the shared secret of another replica')
    shared = latest
    seal.rotate(latest)
    await remember(latest)
  }
  let timer = readLater()
  const changes = redis.onChange((up) => void (up && next()))
  return {
    ...seal,
    [Symbol.dispose]() {
      ended = true
      changes[Symbol.dispose]()
      timer[Symbol.dispose]()
    },
  }
}

/** The maximum length of a stored value. A larger value would delay all other commands on the connection. */
const maxTtlTextLength = 4 * 1024 * 1024

/** A TTL store shared by all replicas (B10). Empty while Redis is down. `maxBytes` limits each replica's entries. */
export function redisTtlStore(redis: SharedRedis, clock: Clock, maxBytes = ttlStoreBytes): TtlStore {
  const at = (key: string) => `${redis.prefix}keepsake:${key}`
  const room = createRoom(maxBytes, clock, (key) => void redis.ask((client) => client.del(at(key))))
  return {
    async set(key, text, ttlMs) {
      if (text.length > Math.min(maxTtlTextLength, maxBytes)) return
      await redis.ask((client) => client.set(at(key), text, 'PX', ttlMs))
      room.take(key, text.length, ttlMs)
    },
    async get(key, ttlMs) {
      const prolonged = await redis.ask((client) => client.multi().get(at(key)).pexpire(at(key), ttlMs).exec())
      const text = prolonged?.[0]?.[1]
      if (typeof text !== 'string') return undefined
      room.take(key, text.length, ttlMs)
      return text
    },
  }
}
