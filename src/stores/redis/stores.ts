import type { Buckets } from '../../core/buckets.ts'
import type { CacheLimits, CacheStore } from '../../core/cache.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { redisBuckets } from './buckets.ts'
import { redisCache } from './cache.ts'
import { connectRedis, type SharedRedis } from './connection.ts'
import { type RedisFleet, redisFleet } from './fleet.ts'
import { sharedSecret } from './secret.ts'

/** What replicas share through Redis (B10). */
export interface RedisStores extends AsyncDisposable {
  readonly redis: SharedRedis
  readonly buckets: Buckets
  readonly cache: CacheStore
  readonly fleet: RedisFleet
  /** The secret that what callers hold is sealed with. */
  readonly secret: string
}

export interface RedisStoresOptions {
  readonly url: string
  readonly limits: CacheLimits
  /** Counts while Redis is away. */
  readonly local: Buckets
  /** The secret of this replica alone, where Redis is away when it starts. */
  ownSecret(): Promise<string>
  readonly clock: Clock
  readonly log: Log
}

/** What a start waits for Redis at most. */
const patienceMs = 2_000

export async function openRedisStores(options: RedisStoresOptions): Promise<RedisStores> {
  const { url, limits, local, clock, log } = options
  await using open = new AsyncDisposableStack()
  const redis = open.use(await connectRedis({ url, clock, log }))
  await isUp(redis, clock)
  const shared = await sharedSecret(redis, 'fleet')
  if (shared === undefined) {
    log.warn({}, 'Redis was away at the start: what other replicas have sealed cannot be opened before the next one')
  }
  const secret = shared ?? (await options.ownSecret())
  const fleet = open.use(redisFleet({ redis, clock, secret }))
  const running = open.move()
  return {
    redis,
    buckets: redisBuckets({ redis, local }),
    cache: redisCache(redis, limits),
    fleet,
    secret,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

async function isUp(redis: SharedRedis, clock: Clock): Promise<void> {
  if (redis.up) return
  const { promise, resolve } = Promise.withResolvers<void>()
  using _listener = redis.onChange(() => resolve())
  using _timer = clock.after(patienceMs, resolve)
  await promise
}
