import { randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { PubSub } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits, CacheStore, TtlStore } from '../../core/stores.ts'
import { derivedSecret } from '../secret-file.ts'
import { redisBuckets } from './buckets.ts'
import { redisCache } from './cache.ts'
import { connectRedis, isUp, type SharedRedis } from './connection.ts'
import { type RedisMembership, type RedisMembershipOptions, redisMembership } from './membership.ts'
import { redisPubSub } from './pub-sub.ts'
import { type RedisSafe, redisSafe } from './safe.ts'
import { redisTtlStore } from './ttl-store.ts'

/** The stores that all replicas share (B10). */
export interface RedisStores extends AsyncDisposable {
  readonly redis: SharedRedis
  readonly buckets: Buckets
  readonly cache: CacheStore
  readonly membership: RedisMembership
  readonly pubSub: PubSub
  readonly ttlStore: TtlStore
  /** The safe for OAuth grants; undefined if no key is configured to seal them. */
  readonly safe: RedisSafe | undefined
  /** The secret that seals the values that callers keep for Toolway. */
  readonly secret: string
}

export interface RedisStoresOptions {
  readonly url: string
  /** The configured key that all replicas share. It protects sealed data from anyone who can read Redis. */
  readonly key?: string | undefined
  readonly limits: CacheLimits
  readonly local: Buckets
  readonly workers?: RedisMembershipOptions['workers']
  /** This replica's own secret, used if Redis is down at the first start. */
  ownSecret(): Promise<string>
  /** Where this replica remembers the secret in Redis, to use it if Redis is down at a later start. */
  readonly remembered: { read(): Promise<string | undefined>; write(secret: string): Promise<void> }
  readonly clock: Clock
  readonly log: Log
}

export async function openRedisStores(options: RedisStoresOptions): Promise<RedisStores> {
  const { url, key, limits, local, workers, clock, log } = options
  await using open = new AsyncDisposableStack()
  const redis = open.use(await connectRedis({ url, clock, log }))
  await isUp(redis, clock)
  const shared = key === undefined ? await rememberingSecret(redis, options) : derivedSecret(key, 'fleet')
  if (shared === undefined)
    log.warn({}, 'Redis was unavailable at startup: data sealed by other replicas cannot be opened until a restart')
  const secret = shared ?? (await options.ownSecret())
  const membership = open.use(redisMembership({ redis, clock, secret, workers }))
  const pubSub = open.use(redisPubSub({ redis, self: membership.self, secret, log }))
  const running = open.move()
  return {
    redis,
    buckets: redisBuckets({ redis, local, monotonic: () => clock.monotonic() }),
    cache: redisCache(redis, limits, () => clock.now()),
    membership,
    pubSub,
    ttlStore: redisTtlStore(redis, clock),
    safe: key === undefined ? undefined : redisSafe({ redis, key, clock, log }),
    secret,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

async function rememberingSecret(
  redis: SharedRedis,
  { remembered, log }: Pick<RedisStoresOptions, 'remembered' | 'log'>,
): Promise<string | undefined> {
  const secret = await sharedSecret(redis, 'fleet')
  if (secret === undefined) return remembered.read()
  await remembered.write(secret).catch((error: Error) => {
    log.warn(
      { error: error.message },
      'the shared secret could not be stored, so it is not available if Redis is down at the next start',
    )
  })
  return secret
}

/** The secret that replicas share in Redis; the first replica creates it. Undefined while Redis is down. */
function sharedSecret(redis: SharedRedis, name: string): Promise<string | undefined> {
  const key = `${redis.prefix}secret:${name}`
  return redis.ask(async (client) => {
    const made = randomBytes(32).toString('base64url')
    return (await client.set(key, made, 'NX')) === 'OK' ? made : ((await client.get(key)) ?? made)
  })
}
