import type { Redis } from 'ioredis'
import type { Buckets, Taken } from '../../core/buckets.ts'
import type { SharedRedis } from './connection.ts'
import { createScript } from './script.ts'

/** As in `stores/buckets.ts`: more calls a minute than this cannot be counted exactly. */
const countable = 100_000_000_000

/**
 * The arithmetic of `stores/buckets.ts`, for several buckets at once and for all replicas one after the other. By the
 * clock of Redis, unless a time is given: replicas' clocks differ, and between two of them a bucket would fill twice.
 */
const take = createScript(`
  local minute = 60000
  local now = tonumber(ARGV[1])
  if now < 0 then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local levels, longest, waits = {}, 0, 0
  for i, key in ipairs(KEYS) do
    local rate = tonumber(ARGV[i + 1])
    local kept = redis.call('HMGET', key, 'used', 'at', 'rate')
    local used, at, was = tonumber(kept[1] or 0), tonumber(kept[2] or now), tonumber(kept[3] or rate)
    local passed = math.min(math.max(now - at, 0), minute)
    used = math.max(used - passed * was, 0)
    if was ~= rate then used = math.min(used, rate * minute) end
    levels[i] = used
    local missing = used + minute - rate * minute
    local wait = missing <= 0 and 0 or math.ceil(missing / rate)
    if wait > longest then longest, waits = wait, i end
  end
  local taken = longest == 0 and minute or 0
  for i, key in ipairs(KEYS) do
    local rate = tonumber(ARGV[i + 1])
    local used = levels[i] + taken
    redis.call('HSET', key, 'used', string.format('%.0f', used), 'at', string.format('%.0f', now), 'rate', ARGV[i + 1])
    redis.call('PEXPIRE', key, 120000)
  end
  return { waits, longest }
`)

export interface RedisBucketsOptions {
  readonly redis: SharedRedis
  /** Counts while Redis is away: each replica then allows what all together should. */
  readonly local: Buckets
  /** `ours`: the time that each call brings along. */
  readonly time?: 'redis' | 'ours'
}

/** Buckets that all replicas draw from (F8, B10): one script, so that nobody can come between looking and taking. */
export function redisBuckets({ redis, local, time = 'redis' }: RedisBucketsOptions): Buckets {
  return {
    async take(buckets, now) {
      // One slot, so that a cluster can run the script.
      const keys = buckets.map(({ key }) => `${redis.prefix}{limit}:${key}`)
      const rates = buckets.map(({ perMinute }) => String(Math.min(perMinute, countable)))
      const told = await redis.ask((client: Redis) =>
        take(client, keys, [time === 'ours' ? String(now) : '-1', ...rates]),
      )
      return told === undefined ? local.take(buckets, now) : takenBy(told as [number, number], buckets)
    },
  }
}

function takenBy([waits, retryAfterMs]: readonly [number, number], buckets: readonly { key: string }[]): Taken {
  const bucket = buckets[waits - 1]
  return bucket === undefined ? { allowed: true } : { allowed: false, key: bucket.key, retryAfterMs }
}
