import { Budget } from '../core/limits/budget.ts'
import { RecentlyUsed } from '../core/limits/recently-used.ts'
import type { CacheLimits, CacheStore } from '../core/stores.ts'

interface CachedItem {
  readonly group: Group
  readonly key: string
  readonly bytes: Buffer
  readonly size: number
  readonly keptAt: number
  readonly expiresAt: number
  readonly owner: string | undefined
}

interface Group {
  mark: number
  readonly items: Map<string, CachedItem>
}

/** The part of the cache that one owner may use: half. */
const shareOf = (limit: number): number => Math.ceil(limit / 2)

/** Estimated size of an item besides its bytes and key: map slot, object, buffer and the buffer's backing store. */
const cachedResultOverhead = 512

/** An LRU cache without a timer: expired results are removed on access or to make room. Limits are read on each put. */
export function memoryCache(limits: CacheLimits): CacheStore {
  const groups = new Map<string, Group>()
  const entries = new Budget('cache_entries', { what: 'cached results', limit: 0, perCaller: 0 })
  const bytes = new Budget('cache_bytes', { what: 'bytes of cached results', limit: 0, perCaller: 0 })
  let putAt = 0
  let evicted = 0
  let lastMark = 0

  const kept = new RecentlyUsed<CachedItem>(
    [
      { budget: entries, of: () => 1 },
      { budget: bytes, of: ({ size }) => size },
    ],
    (item) => {
      item.group.items.delete(item.key)
      if (isFresh(item, putAt)) evicted++
    },
  )

  const groupOf = (name: string): Group => {
    let group = groups.get(name)
    if (group === undefined) {
      group = { mark: ++lastMark, items: new Map() }
      groups.set(name, group)
    }
    return group
  }

  const remove = (item: CachedItem) => {
    item.group.items.delete(item.key)
    kept.delete(item)
  }

  return {
    get(name, key, now) {
      const group = groupOf(name)
      const item = group.items.get(key)
      if (item && isFresh(item, now)) {
        kept.touch(item)
        return { bytes: item.bytes, mark: group.mark }
      }
      if (item) remove(item)
      return { mark: group.mark }
    },
    put(name, key, answer, now) {
      const group = groupOf(name)
      if (group.mark !== answer.mark) return
      const before = group.items.get(key)
      if (before) remove(before)
      const size = answer.bytes.length + 2 * key.length + cachedResultOverhead
      entries.resize(limits.maxEntries, shareOf(limits.maxEntries))
      bytes.resize(limits.maxBytes, shareOf(limits.maxBytes))
      const { owner } = answer
      const maxSize = owner === undefined ? bytes.limit : bytes.perCaller
      if (!(answer.ttlMs > 0) || size > maxSize || entries.limit < 1) return
      const expiresAt = now + answer.ttlMs
      const item = { group, key, bytes: ownBytes(answer.bytes), size, keptAt: now, expiresAt, owner }
      group.items.set(key, item)
      putAt = now
      kept.add(item)
    },
    drop(name) {
      const group = groups.get(name)
      if (!group) return
      group.mark = ++lastMark
      for (const item of group.items.values()) remove(item)
    },
    clear() {
      for (const { items } of groups.values()) for (const item of items.values()) remove(item)
      // Marks issued earlier become invalid, because they belong to groups that no longer exist.
      groups.clear()
    },
    usage: () => ({ entries: entries.used, bytes: bytes.used, evicted, largest: bytes.use().largest }),
  }
}

/** Whether a result may be used. If the clock was set back, a result from the future would expire too late. */
const isFresh = ({ keptAt, expiresAt }: CachedItem, now: number): boolean => keptAt <= now && now < expiresAt

/** Copies the bytes if they are a slice, because a slice would keep the server's whole message in memory. */
function ownBytes(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
