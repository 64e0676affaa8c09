import { createHmac, hash, randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { type Backoff, backoffMs } from '../../lib/duration.ts'
import { createSeal } from '../../lib/seal.ts'
import { derivedSecret } from '../secret-file.ts'
import { closeRecord, competingLocks, openRecord } from '../vault.ts'
import { connectRedis, createScript, isUp, redisAway, type SharedRedis } from './connection.ts'

/** How long to retry a write while Redis is down, and the pauses between attempts. */
const maxWriteWaitMs = 10_000
const writePauses = { firstMs: 50, maxMs: 500 }

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
      const store = async () => (await redis.ask((client) => client.hset(at, name, sealed))) !== undefined
      // Retry, because a refresh token can be used only once: if the new token is not stored, the grant is lost.
      if (!(await retryUntil(store, clock, maxWaitMs, writePauses))) throw redisAway('the OAuth grant')
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

/** Repeats an attempt until it succeeds. Resolves with false if it has not within `maxWaitMs`. */
async function retryUntil(attempt: () => Promise<boolean>, clock: Clock, maxWaitMs: number, pauses: Backoff) {
  const end = clock.monotonic() + maxWaitMs
  for (let failures = 0; !(await attempt()); failures++) {
    if (clock.monotonic() >= end) return false
    await pause(clock, backoffMs(failures, pauses))
  }
  return true
}

/** How long a lock remains taken after its holder has died. */
const usualLeaseMs = 10_000
/** How long to wait for a lock. This is longer than any work under a lock takes: a token refresh times out earlier. */
const maxRedisLockWaitMs = 30_000
/** Poll intervals: short at first, because most locks are held for one request. */
const lockPolls = { firstMs: 10, maxMs: 250 }

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
 * Redis is unavailable for as long as the lease.
 */
export function redisLocks(
  { redis, clock, log, maxWaitMs = maxRedisLockWaitMs }: Bounded<'redis' | 'clock' | 'log'>,
  leaseMs = usualLeaseMs,
): Locks {
  return competingLocks(async (name) => {
    const key = `${redis.prefix}lock:${hash('sha256', name)}`
    const token = randomBytes(16).toString('base64url')
    const take = () => redis.ask((client) => takeLock(client, [key], [token, leaseMs]))
    const release = () => redis.ask((client) => releaseLock(client, [key], [token]))
    const isTaken = async () => {
      const reply = await take()
      if (reply === undefined) throw redisAway('the lock for an OAuth grant')
      return reply === 1
    }
    await using held = new AsyncDisposableStack()
    // Also if taking it fails: it may have been taken even if the response did not arrive in time.
    held.defer(async () => void (await release()))
    if (!(await retryUntil(isTaken, clock, maxWaitMs, lockPolls))) throw lockHeld(maxWaitMs)
    let isOver = false
    // Renewed after a third of the lease, so that two renewals can fail before the lease expires.
    const renewLater = () =>
      clock.after(
        leaseMs / 3,
        async () => {
          const reply = await take()
          if (isOver) await release()
          else if (reply !== 0) renewal = renewLater()
          else log.warn({}, 'a lock expired while Redis was unavailable; another replica holds it now')
        },
        { promptly: true },
      )
    let renewal = renewLater()
    held.defer(() => {
      isOver = true
      renewal[Symbol.dispose]()
    })
    return held.move()
  })
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
