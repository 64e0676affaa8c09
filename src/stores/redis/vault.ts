import { createHmac, hash, randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { createSeal } from '../../lib/seal.ts'
import { derivedSecret } from '../secret-file.ts'
import { closeRecord, memoryLocks, openRecord } from '../vault.ts'
import { connectRedis, createScript, isUp, redisAway, type SharedRedis } from './connection.ts'

/** How long to retry a write while Redis is down, and the pauses between attempts. */
const maxWriteWaitMs = 10_000
const [firstRetryMs, maxRetryMs] = [50, 500]

/** The vault for OAuth grants, with its locks: replicas with separate locks would refresh one token twice. */
export interface RedisSafe {
  readonly vault: Vault
  readonly locks: Locks
}

interface RedisSafeOptions {
  readonly redis: SharedRedis
  /** The sealing key, the same in all replicas' configurations; never sent to Redis. */
  readonly key: string
  readonly clock: Clock
  readonly log: Log
}

type Bounded<Option extends keyof RedisSafeOptions> = Pick<RedisSafeOptions, Option> & { readonly maxWaitMs?: number }

/**
 * A vault shared by all replicas, in one Redis hash (B10, B6). Field names reveal nothing without the key, and a value
 * copied to another field cannot be opened. Rejects while Redis is down, because a record that cannot be read is not
 * the same as an absent one.
 */
export function redisVault({
  redis,
  key: secret,
  clock,
  maxWaitMs = maxWriteWaitMs,
}: Bounded<'redis' | 'key' | 'clock'>): Vault {
  const seal = createSeal(derivedSecret(secret, 'vault'))
  const naming = derivedSecret(secret, 'vault names')
  const nameOf = (key: string) => createHmac('sha256', naming).update(key).digest('base64url')
  const at = `${redis.prefix}vault`

  const asked = async <T>(command: (client: Redis) => Promise<T>): Promise<T> => {
    const reply = await redis.ask(command)
    if (reply === undefined) throw redisAway('the OAuth grant')
    return reply
  }

  return {
    async read(key) {
      const name = nameOf(key)
      const sealed = await asked((client) => client.hget(at, name))
      return sealed === null ? undefined : openRecord(seal, name, sealed)?.text
    },
    async write(key, text) {
      const name = nameOf(key)
      const sealed = closeRecord(seal, name, { key, text })
      const end = clock.monotonic() + maxWaitMs
      // Retry, because a refresh token can be used only once: if the new token is not stored, the grant is lost.
      for (let pauseMs = firstRetryMs; ; pauseMs = Math.min(2 * pauseMs, maxRetryMs)) {
        if ((await redis.ask((client) => client.hset(at, name, sealed))) !== undefined) return
        if (clock.monotonic() >= end) throw redisAway('the OAuth grant')
        await pause(clock, pauseMs)
      }
    },
    async remove(key) {
      await asked((client) => client.hdel(at, nameOf(key)))
    },
    async keys() {
      const all = await asked((client) => client.hgetall(at))
      return Object.entries(all)
        .flatMap(([name, sealed]) => openRecord(seal, name, sealed)?.key ?? [])
        .sort()
    },
  }
}

/** How long a lock remains taken after its holder has died. */
const usualLeaseMs = 10_000
/** How long to wait for a lock. This is longer than any work under a lock takes: a token refresh times out earlier. */
const maxRedisLockWaitMs = 30_000
/** Poll intervals: short at first, because most locks are held for one request. */
const [firstPollMs, maxPollMs] = [10, 250]

/** Takes a free lock, or renews the lock that this token holds. KEYS: lock; ARGV: token, lease. */
const takeLock = createScript(`
  local holder = redis.call('GET', KEYS[1])
  if holder and holder ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
`)

/** Releases a lock only if this token still holds it: the lease may have expired. KEYS: lock; ARGV: token. */
const releaseLock = createScript(`
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0
`)

/**
 * Locks across replicas (B10). A lock is a lease that is renewed while it is held. It expires if its holder dies, or if
 * Redis is unavailable for as long as the lease. Within one process, only one waiter at a time polls Redis.
 */
export function redisLocks(
  { redis, clock, log, maxWaitMs = maxRedisLockWaitMs }: Bounded<'redis' | 'clock' | 'log'>,
  leaseMs = usualLeaseMs,
): Locks {
  const own = memoryLocks()

  const taken = async (key: string, token: string): Promise<void> => {
    const end = clock.monotonic() + maxWaitMs
    for (let pauseMs = firstPollMs; ; pauseMs = Math.min(2 * pauseMs, maxPollMs)) {
      const reply = await redis.ask((client) => takeLock(client, [key], [token, leaseMs]))
      if (reply === 1) return
      if (reply === undefined) throw redisAway('the lock for an OAuth grant')
      if (clock.monotonic() >= end) throw lockHeld(maxWaitMs)
      await pause(clock, pauseMs)
    }
  }

  return {
    async hold(name) {
      const inside = await own.hold(name)
      const key = `${redis.prefix}lock:${hash('sha256', name)}`
      const token = randomBytes(16).toString('base64url')
      const letGo = async () => {
        await redis.ask((client) => releaseLock(client, [key], [token]))
        await inside[Symbol.asyncDispose]()
      }
      try {
        await taken(key, token)
      } catch (error) {
        // Release the lock: it may have been taken even if the response did not arrive in time.
        await letGo()
        throw error
      }
      let renewal = prolong()
      let over = false
      return {
        async [Symbol.asyncDispose]() {
          over = true
          renewal[Symbol.dispose]()
          await letGo()
        },
      }

      function prolong(): Disposable {
        // Renewed after a third of the lease, so that two renewals can fail before the lease expires.
        const renew = async () => {
          const reply = await redis.ask((client) => takeLock(client, [key], [token, leaseMs]))
          if (over) return void redis.ask((client) => releaseLock(client, [key], [token]))
          if (reply === 0)
            return log.warn({}, 'a lock expired while Redis was unavailable; another replica holds it now')
          renewal = prolong()
        }
        return clock.after(leaseMs / 3, renew, { promptly: true })
      }
    },
  }
}

function lockHeld(maxWaitMs: number): ToolwayError {
  const sentence = `Another replica has held this lock for more than ${maxWaitMs / 1000} s; try again in a moment.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 1_000, unsent: true })
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
