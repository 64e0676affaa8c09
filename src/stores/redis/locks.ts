import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Locks } from '../../core/stores.ts'
import { memoryLocks } from '../locks.ts'
import { createScript, redisAway, type SharedRedis } from './connection.ts'

/** How long the lock of a dead holder blocks the others. */
const usualLeaseMs = 10_000
/** Longer than any work under a lock: a token refresh times out before. */
const usualPatienceMs = 30_000
/** Poll intervals: short at first, because most locks are held for one request. */
const [firstPauseMs, maxPauseMs] = [10, 250]

/** KEYS: lock; ARGV: token, lease. Takes a free lock, or renews the holder's own. */
const take = createScript(`
  local holder = redis.call('GET', KEYS[1])
  if holder and holder ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
`)

/** KEYS: lock; ARGV: token. After the lease expired, another replica may hold the lock. */
const release = createScript(`
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0
`)

export interface RedisLocksOptions {
  readonly redis: SharedRedis
  readonly clock: Clock
  readonly log: Log
  readonly leaseMs?: number
  readonly patienceMs?: number
}

/**
 * Locks across replicas (B10): leases that are renewed while held. They expire with their holder, and one lease after
 * Redis becomes unavailable. Waiters within one process do not poll Redis.
 */
export function redisLocks(options: RedisLocksOptions): Locks {
  const { redis, clock, log, leaseMs = usualLeaseMs, patienceMs = usualPatienceMs } = options
  const own = memoryLocks()

  const taken = async (key: string, token: string): Promise<void> => {
    const end = clock.monotonic() + patienceMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      const told = await redis.ask((client) => take(client, [key], [token, leaseMs]))
      if (told === 1) return
      if (told === undefined) throw redisAway('this call needs a lock from it')
      if (clock.monotonic() >= end) throw held(patienceMs)
      await pause(clock, pauseMs)
    }
  }

  return {
    async hold(name) {
      const inside = await own.hold(name)
      const key = `${redis.prefix}lock:${hash('sha256', name)}`
      const token = randomBytes(16).toString('base64url')
      const letGo = async () => {
        await redis.ask((client) => release(client, [key], [token]))
        await inside[Symbol.asyncDispose]()
      }
      try {
        await taken(key, token)
      } catch (error) {
        // The lock may have been taken even if the response did not arrive in time.
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
        // A third of the lease: two renewals can fail before it expires.
        const renew = async () => {
          const told = await redis.ask((client) => take(client, [key], [token, leaseMs]))
          if (over) return void redis.ask((client) => release(client, [key], [token]))
          if (told === 0)
            return log.warn({}, 'a lock expired while Redis was unreachable, and another replica acquired it')
          renewal = prolong()
        }
        return clock.after(leaseMs / 3, renew, { promptly: true })
      }
    },
  }
}

const held = (patienceMs: number) =>
  new ToolwayError(
    'OVERLOADED',
    `Another replica has held the lock for this operation for ${patienceMs / 1000} s. Try again in a moment.`,
    { retryAfterMs: 1_000, unsent: true },
  )
