import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { CacheLimits, CacheLookup, CacheStore, CacheUsage } from '../../core/stores.ts'
import { createScript, type SharedRedis } from './connection.ts'

/** Estimated size of a result besides its bytes: key, position in the LRU order, size. */
const sharedResultOverhead = 256
const skewMs = 5_000
/** How long Redis keeps expired results, so that the reader's clock alone decides whether a result has expired. */
const expiredGraceMs = 60_000
/** The maximum number of results that one put evicts. If that is not enough, later puts evict more. */
const maxEvicted = 64

/**
 * Stores a result unless its group was dropped since the call began; evicts the least recently used results. KEYS: all,
 * group, order, sizes, kept; ARGV: mark, field, bytes, size, now, expires, most entries, most bytes.
 */
const putResult = createScript(`
  local mark = (redis.call('GET', KEYS[1]) or '0') .. '.' .. (redis.call('GET', KEYS[2]) or '0')
  if mark ~= ARGV[1] then return false end
  local function remove(field)
    local size = redis.call('HGET', KEYS[4], field)
    if size then redis.call('HINCRBY', KEYS[4], 'bytes', -size) end
    redis.call('HDEL', KEYS[4], field)
    redis.call('ZREM', KEYS[3], field)
    redis.call('DEL', KEYS[5] .. field)
  end
  local field, size, now, lasts = ARGV[2], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]) - tonumber(ARGV[5])
  local entries, bytes = tonumber(ARGV[7]), tonumber(ARGV[8])
  remove(field)
  local evicted = 0
  if lasts > 0 and size <= bytes and entries >= 1 then
    local used = tonumber(redis.call('HGET', KEYS[4], 'bytes') or 0)
    local kept = redis.call('ZCARD', KEYS[3])
    while kept > 0 and (kept >= entries or used + size > bytes) and evicted < ${maxEvicted} do
      remove(redis.call('ZRANGE', KEYS[3], 0, 0)[1])
      evicted = evicted + 1
      used = tonumber(redis.call('HGET', KEYS[4], 'bytes') or 0)
      kept = redis.call('ZCARD', KEYS[3])
    end
    redis.call('SET', KEYS[5] .. field, ARGV[1] .. ' ' .. now .. ' ' .. ARGV[6] .. '\\n' .. ARGV[3], 'PX', lasts + ${expiredGraceMs})
    redis.call('HSET', KEYS[4], field, size)
    redis.call('HINCRBY', KEYS[4], 'bytes', size)
    redis.call('ZADD', KEYS[3], now, field)
  end
  return { redis.call('ZCARD', KEYS[3]), tonumber(redis.call('HGET', KEYS[4], 'bytes') or 0), evicted }
`)

/**
 * Results shared by replicas (F13, B10). Dropping a group only changes its mark: results stored under the old mark are
 * no longer found, and expire or are evicted later. While Redis is down, nothing is cached. The wall clock is the only
 * clock that replicas share; if it shows that a result has expired or was stored in the future, the result is not used.
 */
export function redisCache(
  redis: SharedRedis,
  limits: CacheLimits,
  wallTime: (now: number) => number = () => Date.now(),
): CacheStore {
  // The braces put all keys into one hash slot, so that Redis Cluster can run the script.
  const at = (name: string) => `${redis.prefix}{cache}:${name}`
  const [all, order, sizes, kept] = [at('mark'), at('order'), at('sizes'), at('kept:')]
  const groupKey = (group: string) => at(`mark:${group}`)
  let usage: CacheUsage = { entries: 0, bytes: 0, evicted: 0 }
  /** The lookup result while Redis is down. Its mark never matches, so nothing is stored under it. */
  const away: CacheLookup = { mark: '' }
  /** Marks that could not be changed because Redis was down. No results are returned until they have been changed. */
  const owed = new Set<string>()
  const change = async (mark: string) => {
    owed.add(mark)
    if ((await redis.ask((client) => client.incr(mark))) !== undefined) owed.delete(mark)
  }
  const makeUp = async (): Promise<boolean> => {
    await Promise.all([...owed].map(change))
    return owed.size === 0
  }
  redis.onChange((up) => void (up && makeUp()))

  return {
    async get(group, key, monotonic) {
      const now = wallTime(monotonic)
      if (owed.size > 0 && !(await makeUp())) return away
      const field = fieldOf(group, key)
      const read = (client: Redis) => client.mgetBuffer(all, groupKey(group), kept + field)
      const [first, second, value] = (await redis.ask(read)) ?? []
      if (first === undefined) return away
      const mark = `${first ?? '0'}.${second ?? '0'}`
      if (!value) return { mark }
      const line = value.indexOf(10)
      const [under, keptAt, expiresAt] = value.toString('latin1', 0, line).split(' ')
      if (under !== mark || now >= Number(expiresAt) || now < Number(keptAt) - skewMs) {
        if (under === mark) await redis.ask((client) => client.del(kept + field))
        return { mark }
      }
      void redis.ask((client) => client.zadd(order, 'XX', now, field))
      return { bytes: value.subarray(line + 1), mark }
    },
    async put(group, key, { bytes, mark, ttlMs }, monotonic) {
      const now = wallTime(monotonic)
      const size = bytes.length + key.length + sharedResultOverhead
      const { maxEntries, maxBytes } = limits
      const values = [mark, fieldOf(group, key), bytes, size, now, now + Math.max(ttlMs, 0), maxEntries, maxBytes]
      const keys = [all, groupKey(group), order, sizes, kept]
      const reply = await redis.ask((client) => putResult(client, keys, values))
      const [entries, used = 0, evicted = 0] = (reply ?? []) as readonly number[]
      if (entries !== undefined) usage = { entries, bytes: used, evicted: usage.evicted + evicted }
    },
    drop: (group) => change(groupKey(group)),
    clear: () => change(all),
    usage: () => usage,
  }
}

/** A result's hash field name. It is a digest, because keys contain arguments, which must not be visible in Redis. */
const fieldOf = (group: string, key: string): string => hash('sha256', `${group.length} ${group} ${key}`, 'base64url')
