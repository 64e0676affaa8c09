import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { connectRedis, isUp, type SharedRedis } from './connection.ts'
import { redisLocks } from './locks.ts'
import { redisVault } from './vault.ts'

/** The vault for OAuth grants, with its locks: replicas with separate locks would refresh one token twice. */
export interface RedisSafe {
  readonly vault: Vault
  readonly locks: Locks
}

export interface RedisSafeOptions {
  readonly redis: SharedRedis
  readonly key: string
  readonly clock: Clock
  readonly log: Log
}

export const redisSafe = (options: RedisSafeOptions): RedisSafe => ({
  vault: redisVault(options),
  locks: redisLocks(options),
})

/** Opens a safe with its own connection, for commands such as sign-in that need nothing else from Redis. */
export async function openRedisSafe({
  url,
  ...around
}: Omit<RedisSafeOptions, 'redis'> & { readonly url: string }): Promise<RedisSafe & AsyncDisposable> {
  const redis = await connectRedis({ url, clock: around.clock, log: around.log })
  await isUp(redis, around.clock)
  return { ...redisSafe({ redis, ...around }), [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() }
}
