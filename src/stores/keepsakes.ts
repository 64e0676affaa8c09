import type { Clock } from '../core/clock.ts'
import type { Keepsakes } from '../core/keepsakes.ts'
import { createRoom } from './room.ts'

/** As much as one process keeps, wherever it keeps it. */
export const keepsakeBytes = 32 * 1024 * 1024

/** Keepsakes of this process alone. */
export function memoryKeepsakes(clock: Clock, most = keepsakeBytes): Keepsakes {
  const kept = new Map<string, string>()
  const room = createRoom({ most, clock, leave: (key) => void kept.delete(key) })
  return {
    keep(key, text, ttlMs) {
      kept.set(key, text)
      room.take(key, text.length, ttlMs)
    },
    find(key, ttlMs) {
      const text = room.has(key) ? kept.get(key) : undefined
      if (text !== undefined) room.take(key, text.length, ttlMs)
      return text
    },
  }
}
