import type { CacheLimits, CacheStore, Mark } from '../core/stores.ts'

/** A cached result. `older` and `newer` link the results in order of last use. */
interface Item {
  readonly group: Group
  readonly key: string
  readonly bytes: Buffer
  readonly size: number
  readonly keptAt: number
  readonly expiresAt: number
  older: Item
  newer: Item
}

interface Group {
  mark: number
  readonly items: Map<string, Item>
}

/** Estimated size of an item besides its bytes and key: map slot, object, buffer and the buffer's backing store. */
const overhead = 512

/** An LRU cache without a timer: expired results are removed on access or to make room. Limits are read on each put. */
export function memoryCache(limits: CacheLimits): CacheStore {
  const groups = new Map<string, Group>()
  let ends = emptyRing()
  let entries = 0
  let bytes = 0
  let evicted = 0
  let lastMark = 0

  const groupOf = (name: string): Group => {
    let group = groups.get(name)
    if (group === undefined) {
      group = { mark: ++lastMark, items: new Map() }
      groups.set(name, group)
    }
    return group
  }

  const remove = (item: Item) => {
    item.group.items.delete(item.key)
    unlink(item)
    entries--
    bytes -= item.size
  }

  const makeRoom = (size: number, now: number) => {
    while (entries > 0 && (entries >= limits.maxEntries || bytes + size > limits.maxBytes)) {
      if (isFresh(ends.newer, now)) evicted++
      remove(ends.newer)
    }
  }

  return {
    get(name, key, now) {
      const group = groupOf(name)
      const item = group.items.get(key)
      if (item === undefined) return { mark: group.mark }
      if (!isFresh(item, now)) {
        remove(item)
        return { mark: group.mark }
      }
      unlink(item)
      linkBefore(ends, item)
      return { bytes: item.bytes, mark: group.mark }
    },
    put(name, key, answer, now) {
      const group = groupOf(name)
      if (group.mark !== answer.mark) return
      const before = group.items.get(key)
      if (before) remove(before)
      const size = answer.bytes.length + 2 * key.length + overhead
      if (!(answer.ttlMs > 0) || size > limits.maxBytes || limits.maxEntries < 1) return
      makeRoom(size, now)
      const expiresAt = now + answer.ttlMs
      const kept = { group, key, bytes: alone(answer.bytes), size, keptAt: now, expiresAt, older: ends, newer: ends }
      group.items.set(key, kept)
      linkBefore(ends, kept)
      entries++
      bytes += size
    },
    drop(name) {
      const group = groups.get(name)
      if (group === undefined) return
      group.mark = ++lastMark
      // The amortized cost of this loop is constant, because each item is put once and dropped at most once.
      for (const item of group.items.values()) remove(item)
    },
    clear() {
      // Marks issued earlier become invalid, because they belong to groups that no longer exist.
      groups.clear()
      ends = emptyRing()
      entries = 0
      bytes = 0
    },
    usage: () => ({ entries, bytes, evicted }),
  }
}

/** Whether a result may be used. If the clock was set back, a result from the future would expire too late. */
const isFresh = ({ keptAt, expiresAt }: Item, now: number): boolean => keptAt <= now && now < expiresAt

/** Copies the bytes if they are a slice, because a slice would keep the server's whole message in memory. */
function alone(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** The sentinel of the circular LRU list. Its `newer` neighbour is the oldest item, its `older` one the newest. */
function emptyRing(): Item {
  const group = { mark: 0 satisfies Mark, items: new Map() }
  const ends = { group, key: '', bytes: Buffer.alloc(0), size: 0, keptAt: 0, expiresAt: 0 } as Item
  ends.older = ends
  ends.newer = ends
  return ends
}

function linkBefore(next: Item, item: Item): void {
  item.newer = next
  item.older = next.older
  next.older.newer = item
  next.older = item
}

function unlink(item: Item): void {
  item.older.newer = item.newer
  item.newer.older = item.older
}
