import type { Clock } from '../core/clock.ts'
import type { TtlStore } from '../core/ttl-store.ts'
import { createRoom } from './room.ts'

/** As much as one process keeps, wherever it keeps it. */
export const ttlStoreBytes = 32 * 1024 * 1024

/** Keepsakes of this process alone. */
export function memoryTtlStore(clock: Clock, most = ttlStoreBytes): TtlStore {
  const kept = new Map<string, string>()
  const room = createRoom({ most, clock, leave: (key) => void kept.delete(key) })
  return {
    set(key, text, ttlMs) {
      kept.set(key, text)
      room.take(key, text.length, ttlMs)
    },
    get(key, ttlMs) {
      const text = room.has(key) ? kept.get(key) : undefined
      if (text !== undefined) room.take(key, text.length, ttlMs)
      return text
    },
  }
}
