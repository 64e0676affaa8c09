import type { Clock } from '../core/clock.ts'
import type { LoginStore, StoredLogin } from '../core/history.ts'
import type { TtlStore } from '../core/stores.ts'
import { jsonValue } from '../json/parse-json.ts'
import { hourMs } from '../lib/duration.ts'

/** How many bytes one process may store, in memory or in Redis. */
export const ttlStoreBytes = 32 * 1024 * 1024

export function memoryTtlStore(clock: Clock, maxBytes = ttlStoreBytes): TtlStore {
  const kept = new Map<string, string>()
  const room = createRoom(maxBytes, clock, (key) => kept.delete(key))
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

/** Tracks the size and expiry of entries. Evicts the least recently used ones beyond a total of `maxBytes`. */
export function createRoom(maxBytes: number, clock: Clock, evict: (key: string) => void) {
  const taken = new Map<string, { readonly size: number; readonly until: number }>()
  let total = 0

  const leave = (key: string): void => {
    total -= taken.get(key)?.size ?? 0
    taken.delete(key)
  }

  return {
    take(key: string, size: number, ttlMs: number): void {
      leave(key)
      taken.set(key, { size, until: clock.monotonic() + ttlMs })
      total += size
      for (const [oldest, { until }] of taken) {
        if (until > clock.monotonic() && total <= maxBytes) return
        leave(oldest)
        evict(oldest)
      }
    },
    leave,
    has: (key: string): boolean => (taken.get(key)?.until ?? 0) > clock.monotonic(),
  }
}

/** No login lasts longer. An ended one is remembered as long, so that other processes do not find it in `local`. */
const maxLoginMs = 24 * hourMs

/** Logins that several processes share. `local` has those of this machine, for when the shared store is unavailable. */
export function sharedLogins(local: LoginStore, shared: TtlStore): LoginStore {
  const find = async (digest: string): Promise<StoredLogin | null | undefined> => {
    const text = await shared.get(`login:${digest}`, maxLoginMs)
    return text === undefined ? local.find(digest) : (jsonValue(text) as StoredLogin | null)
  }
  return {
    find,
    async add(login) {
      await shared.set(`login:${login.digest}`, JSON.stringify(login), maxLoginMs)
      return (await local.add(login)) || (await find(login.digest)) != null
    },
    async remove(digest) {
      await Promise.all([shared.set(`login:${digest}`, 'null', maxLoginMs), local.remove(digest)])
    },
  }
}
