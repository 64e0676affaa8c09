import type { CacheLimits, CacheStore, CacheUsage, Found } from '../core/cache.ts'
import { asBuffer, type DeskAnswers } from './desk.ts'
import type { Line } from './line.ts'

/** A mark that nothing is ever kept under. */
const away: Found = { mark: '' }

/** Larger answers would hold up everybody's questions on their way: they are asked for anew each time. */
const maxValueBytes = 1024 * 1024

/** Results that all workers share (F13, B10). While the first process does not answer, nothing is kept. */
export function ipcCache(line: Line<DeskAnswers>, limits: CacheLimits): CacheStore {
  let usage: CacheUsage = { entries: 0, bytes: 0, evicted: 0 }
  const look = async () => {
    usage = (await line.ask('usage')) ?? usage
  }
  return {
    async get(group, key, now) {
      const found = await line.ask('get', group, key, now)
      if (found?.bytes === undefined) return found ?? away
      return { bytes: asBuffer(found.bytes), mark: found.mark }
    },
    async put(group, key, answer, now) {
      const { maxEntries, maxBytes } = limits
      // One that is too large takes the place of the one before all the same.
      const kept = answer.bytes.length > maxValueBytes ? { ...answer, bytes: Buffer.alloc(0), ttlMs: 0 } : answer
      usage = (await line.ask('put', group, key, kept, now, { maxEntries, maxBytes })) ?? usage
    },
    async drop(group) {
      // Told, not asked: that has to arrive, however late. When what is asked after it is answered, it has.
      line.tell('drop', group)
      await look()
    },
    async clear() {
      line.tell('clear')
      await look()
    },
    usage: () => usage,
  }
}
