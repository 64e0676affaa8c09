import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Locks } from '../../core/stores.ts'
import { memoryLocks } from '../locks.ts'
import { createScript, redisAway, type SharedRedis } from './connection.ts'

/** How long a lock remains taken after its holder has died. */
const usualLeaseMs = 10_000
/** How long to wait for a lock. This is longer than any work under a lock takes: a token refresh times out earlier. */
const defaultMaxWaitMs = 30_000
/** Poll intervals: short at first, because most locks are held for one request. */
const [firstPauseMs, maxPauseMs] = [10, 250]

/** Takes a free lock, or renews the lock that this token holds. KEYS: lock; ARGV: token, lease. */
const take = createScript(`
  local holder = redis.call('GET', KEYS[1])
  if holder and holder ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
`)

/** Releases a lock only if this token still holds it: the lease may have expired. KEYS: lock; ARGV: token. */
const release = createScript(`
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0
`)

export interface RedisLocksOptions {
  readonly redis: SharedRedis
  readonly clock: Clock
  readonly log: Log
  readonly leaseMs?: number
  readonly maxWaitMs?: number
}

/**
 * Locks across replicas (B10). A lock is a lease that is renewed while it is held. It expires if its holder dies, or if
 * Redis is unavailable for as long as the lease. Within one process, only one waiter at a time polls Redis.
 */
export function redisLocks(options: RedisLocksOptions): Locks {
  const { redis, clock, log, leaseMs = usualLeaseMs, maxWaitMs = defaultMaxWaitMs } = options
  const own = memoryLocks()

  const taken = async (key: string, token: string): Promise<void> => {
    const end = clock.monotonic() + maxWaitMs
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      const reply = await redis.ask((client) => take(client, [key], [token, leaseMs]))
      if (reply === 1) return
      if (reply === undefined) throw redisAway('the lock for an OAuth grant')
      if (clock.monotonic() >= end) throw held(maxWaitMs)
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
          const reply = await redis.ask((client) => take(client, [key], [token, leaseMs]))
          if (over) return void redis.ask((client) => release(client, [key], [token]))
          if (reply === 0)
            return log.warn({}, 'a lock expired while Redis was unavailable; another replica holds it now')
          renewal = prolong()
        }
        return clock.after(leaseMs / 3, renew, { promptly: true })
      }
    },
  }
}

function held(maxWaitMs: number): ToolwayError {
  const sentence = `Another replica has held this lock for more than ${maxWaitMs / 1000} s; try again in a moment.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 1_000, unsent: true })
}
