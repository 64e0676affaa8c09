import type { Clock } from '../core/clock.ts'
import type { TtlStore } from '../core/stores.ts'

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

/** Keeps account of what takes room and for how long, so that all of it together stays below a bound. */
interface Room {
  /** This takes so much from now on. What was used longest ago leaves where that is too much for all. */
  take(key: string, size: number, ttlMs: number): void
  /** Whether it is there and has not had its time. */
  has(key: string): boolean
}

interface RoomOptions {
  readonly most: number
  readonly clock: Clock
  /** It has had its time, or has to make room. */
  leave(key: string): void
}

export function createRoom({ most, clock, leave }: RoomOptions): Room {
  /** In the order of their last use. */
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
