import type { Clock } from '../core/clock.ts'
import type { TtlStore } from '../core/stores.ts'

/** The limit of one process, in memory or in Redis. */
export const ttlStoreBytes = 32 * 1024 * 1024

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

/** Tracks size and expiry of entries, and keeps their total below a bound. */
interface Room {
  /** Adds or renews an entry; evicts the least recently used ones if the total is too large. */
  take(key: string, size: number, ttlMs: number): void
  has(key: string): boolean
}

interface RoomOptions {
  readonly most: number
  readonly clock: Clock
  leave(key: string): void
}

export function createRoom({ most, clock, leave }: RoomOptions): Room {
  /** In order of last use. */
  const taken = new Map<string, { readonly size: number; readonly until: number }>()
  let total = 0

  const remove = (key: string): void => {
    total -= taken.get(key)?.size ?? 0
    taken.delete(key)
  }

  return {
    take(key, size, ttlMs) {
      remove(key)
      taken.set(key, { size, until: clock.monotonic() + ttlMs })
      total += size
      for (const [oldest, { until }] of taken) {
        if (until > clock.monotonic() && total <= most) return
        remove(oldest)
        leave(oldest)
      }
    },
    has: (key) => (taken.get(key)?.until ?? 0) > clock.monotonic(),
  }
}
