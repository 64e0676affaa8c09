import type { Clock } from '../../core/clock.ts'
import type { TtlStore } from '../../core/stores.ts'
import { createRoom, ttlStoreBytes } from '../ttl-store.ts'
import type { SharedRedis } from './connection.ts'

/** The maximum length of a stored value. A larger value would delay all other commands on the connection. */
const maxLength = 4 * 1024 * 1024

/** A TTL store shared by all replicas (B10). Empty while Redis is down. `maxBytes` limits each replica's entries. */
export function redisTtlStore(redis: SharedRedis, clock: Clock, maxBytes = ttlStoreBytes): TtlStore {
  const at = (key: string) => `${redis.prefix}keepsake:${key}`
  const room = createRoom(maxBytes, clock, (key) => void redis.ask((client) => client.del(at(key))))
  return {
    async set(key, text, ttlMs) {
      if (text.length > Math.min(maxLength, maxBytes)) return
      await redis.ask((client) => client.set(at(key), text, 'PX', ttlMs))
      room.take(key, text.length, ttlMs)
    },
    async get(key, ttlMs) {
      const prolonged = await redis.ask((client) => client.multi().get(at(key)).pexpire(at(key), ttlMs).exec())
      const text = prolonged?.[0]?.[1]
      if (typeof text !== 'string') return undefined
      room.take(key, text.length, ttlMs)
      return text
    },
  }
}
