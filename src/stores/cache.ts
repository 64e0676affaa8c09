import type { CacheLimits, CacheStore, Mark } from '../core/stores.ts'

/** A cached result. `older` and `newer` link the results in order of last use. */
interface Item {
  readonly group: Group
  readonly key: string
  readonly bytes: Buffer
  readonly size: number
  readonly keptAt: number
  readonly expiresAt: number
  readonly owner: Owner | undefined
  older: Item
  newer: Item
}

/** A caller that may use half of the cache. Its results are in order of last use. */
interface Owner {
  readonly name: string
  bytes: number
  readonly items: Set<Item>
}

interface Group {
  mark: number
  readonly items: Map<string, Item>
}

/** The part of the cache that one owner may use. */
const share = 0.5

/** Estimated size of an item besides its bytes and key: map slot, object, buffer and the buffer's backing store. */
const overhead = 512

/** An LRU cache without a timer: expired results are removed on access or to make room. Limits are read on each put. */
export function memoryCache(limits: CacheLimits): CacheStore {
  const groups = new Map<string, Group>()
  const owners = new Map<string, Owner>()
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
    const { group, key, size, owner } = item
    group.items.delete(key)
    unlink(item)
    entries--
    bytes -= size
    if (!owner?.items.delete(item)) return
    owner.bytes -= size
    if (owner.items.size === 0) owners.delete(owner.name)
  }

  const evict = (item: Item, now: number) => {
    if (isFresh(item, now)) evicted++
    remove(item)
  }

  const makeRoom = (size: number, now: number, owner: Owner | undefined) => {
    for (const item of owner?.items ?? []) {
      const { items, bytes } = owner as Owner
      if (items.size < limits.maxEntries * share && bytes + size <= limits.maxBytes * share) break
      evict(item, now)
    }
    while (entries > 0 && (entries >= limits.maxEntries || bytes + size > limits.maxBytes)) evict(ends.newer, now)
  }

  const ownerOf = (name: string | undefined): Owner | undefined => {
    return name === undefined ? undefined : (owners.get(name) ?? { name, bytes: 0, items: new Set() })
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
      if (item.owner?.items.delete(item)) item.owner.items.add(item)
      return { bytes: item.bytes, mark: group.mark }
    },
    put(name, key, answer, now) {
      const group = groupOf(name)
      if (group.mark !== answer.mark) return
      const before = group.items.get(key)
      if (before) remove(before)
      const size = answer.bytes.length + 2 * key.length + overhead
      if (!(answer.ttlMs > 0) || size > limits.maxBytes || limits.maxEntries < 1) return
      const owner = ownerOf(answer.owner)
      makeRoom(size, now, owner)
      const expiresAt = now + answer.ttlMs
      const own = { bytes: alone(answer.bytes), size, keptAt: now, expiresAt, owner }
      const kept = { group, key, ...own, older: ends, newer: ends }
      group.items.set(key, kept)
      if (owner) {
        owner.items.add(kept)
        owner.bytes += size
        owners.set(owner.name, owner)
      }
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
      owners.clear()
      ends = emptyRing()
      entries = 0
      bytes = 0
    },
    usage: () => ({
      entries,
      bytes,
      evicted,
      largest: Math.max(0, ...[...owners.values()].map((owner) => owner.bytes)),
    }),
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
