import type { Redis } from 'ioredis'
import type { Buckets } from '../../core/stores.ts'
import { groupMs, limitWindowMs, maxExact } from '../buckets.ts'
import { createScript, type SharedRedis } from './connection.ts'

/** How long Redis keeps a bucket: no bucket is lost if the Redis wall clock steps forward by less than this. */
const bucketTtlMs = 2 * 3_600_000

/**
 * The sliding window from `stores/buckets.ts`, shared by all replicas, for several buckets in one atomic step. The
 * Redis wall clock can jump, so the script keeps a shared time that the replicas advance: each replica adds the time
 * that its monotonic clock has counted since it last read the shared time, and the largest value wins. The Redis clock
 * is used only after all replicas have restarted, when none of them knows the shared time. KEYS: the shared time, the
 * buckets. ARGV: the shared time as this replica knows it, or '', then the limits. A bucket is a hash: the number of
 * calls (`n`), its first and last group (`h`, `t`), when the last group began (`b`), and `time count` for each group.
 */
const takeFromBuckets = createScript(`
  local clock = redis.call('TIME')
  local wall = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local before = redis.call('HMGET', KEYS[1], 'time', 'wall')
  local now = tonumber(ARGV[1])
  if before[1] then
    local passed = now and 0 or math.max(wall - tonumber(before[2]), 0)
    now = math.max(now or 0, tonumber(before[1]) + passed)
  end
  now = now or wall
  redis.call('HSET', KEYS[1], 'time', string.format('%.0f', now), 'wall', string.format('%.0f', wall))
  redis.call('PEXPIRE', KEYS[1], ${2 * bucketTtlMs})
  local function group(key, at)
    local time, count = string.match(redis.call('HGET', key, at), '(%d+) (%d+)')
    return tonumber(time), tonumber(count)
  end
  local longest, waits = 0, 0
  for i = 2, #KEYS do
    local key, limit = KEYS[i], tonumber(ARGV[i])
    local kept = redis.call('HMGET', key, 'n', 'h', 't')
    local total, head, tail = tonumber(kept[1] or 0), tonumber(kept[2] or 1), tonumber(kept[3] or 0)
    local gone = {}
    while head <= tail do
      local time, count = group(key, head)
      if time > now - ${limitWindowMs} then break end
      gone[#gone + 1] = head
      total = total - count
      head = head + 1
    end
    if head > tail then
      if #gone > 0 then redis.call('DEL', key) end
    elseif #gone > 0 then
      redis.call('HDEL', key, unpack(gone))
      redis.call('HSET', key, 'n', total, 'h', head)
    end
    local left, at = total, head
    while left >= limit do
      local time, count = group(key, at)
      left = left - count
      at = at + 1
      local wait = time + ${limitWindowMs} - now
      if left < limit and wait > longest then longest, waits = wait, i - 1 end
    end
  end
  if longest == 0 then
    for i = 2, #KEYS do
      local key, limit = KEYS[i], tonumber(ARGV[i])
      local kept = redis.call('HMGET', key, 't', 'b')
      local tail, begun = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
      local count = 0
      if tail > 0 and now - begun < (limit > ${maxExact} and ${groupMs} or 1) then
        local _, counted = group(key, tail)
        count = counted
      else
        tail, begun = tail + 1, now
      end
      local value = string.format('%.0f %.0f', now, count + 1)
      redis.call('HSET', key, 't', tail, 'b', string.format('%.0f', begun), tail, value)
      redis.call('HSETNX', key, 'h', tail)
      redis.call('HINCRBY', key, 'n', 1)
      redis.call('PEXPIRE', key, ${bucketTtlMs})
    end
  end
  return { waits, longest, string.format('%.0f', now) }
`)

interface RedisBucketsOptions {
  readonly redis: SharedRedis
  /** The buckets to use while Redis is down. Each replica then allows the whole limit. */
  readonly local: Buckets
  /** `ours`: the `now` that each call passes is already the shared time. */
  readonly time?: 'shared' | 'ours'
  monotonic(): number
}

/** Buckets shared by all replicas (F8, B10). One script checks and counts a call atomically. */
export function redisBuckets({ redis, local, time = 'shared', monotonic }: RedisBucketsOptions): Buckets {
  /** The shared time minus the local time: a lower bound, because the response took time to arrive. */
  let ahead = time === 'ours' ? 0 : Number.NEGATIVE_INFINITY
  return {
    async take(buckets, now) {
      // The braces put all keys into one hash slot, so that Redis Cluster can run the script.
      const keys = ['time', ...buckets.map(({ key }) => `limit:${key}`)].map((key) => `${redis.prefix}{limits}:${key}`)
      const shared = Number.isFinite(ahead) ? String(now + ahead) : ''
      const limits = buckets.map(({ perMinute }) => String(perMinute))
      const reply = await redis.ask((client: Redis) => takeFromBuckets(client, keys, [shared, ...limits]))
      if (reply === undefined) return local.take(buckets, now)
      const [waits, retryAfterMs, sharedNow] = reply as [number, number, string]
      if (time === 'shared') ahead = Math.max(ahead, Number(sharedNow) - monotonic())
      const bucket = buckets[waits - 1]
      return bucket === undefined ? { allowed: true } : { allowed: false, key: bucket.key, retryAfterMs }
    },
  }
}
