import type { TtlStore } from '../core/ttl-store.ts'
import type { DeskAnswers } from './desk.ts'
import type { Line } from './line.ts'

/** Larger ones would hold up everybody's questions on their way. */
const longest = 1024 * 1024

/** Keepsakes that all workers find (B10). While the first process does not answer there are none. */
export function ipcTtlStore(line: Line<DeskAnswers>): TtlStore {
  return {
    set(key, text, ttlMs) {
      if (text.length <= longest) line.tell('keepsake', key, text, ttlMs)
    },
    get: (key, ttlMs) => line.ask('keepsakeOf', key, ttlMs),
  }
}
