import type { Clock } from '../../core/clock.ts'
import type { TakenOver } from '../../core/cluster.ts'
import type { Buckets, CachedAnswer, CacheLimits, CacheStore, CacheUsage } from '../../core/stores.ts'
import { memoryBuckets } from '../../stores/buckets.ts'
import { memoryCache } from '../../stores/cache.ts'
import { memoryTtlStore } from '../../stores/ttl-store.ts'

/** Primary methods that workers call. */
export type PrimaryServiceMethods = {
  take: Buckets['take']
  get: CacheStore['get']
  /** `limits` come from the current configuration, which only workers load. */
  put(group: string, key: string, answer: CachedAnswer, now: number, limits: CacheLimits): CacheUsage
  drop(group: string): void
  clear(): void
  usage(): CacheUsage
  join(member: WorkerMember): void
  keep(session: string, record: string): void
  takeOver(session: string, unreachable: string): TakenOver
  forget(session: string): void
  keepsake(key: string, text: string, ttlMs: number): void
  keepsakeOf(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}

/** The state that the workers on one machine share: rate limits, cache, sessions, membership. */
export interface PrimaryServices {
  readonly registry: ReturnType<typeof createWorkerRegistry>
  /** The methods for the worker named `name`. `joined` is called when that worker starts listening. */
  methodsFor(name: string, joined: () => void): PrimaryServiceMethods
}

export function createPrimaryServices(clock: Clock): PrimaryServices {
  const buckets = memoryBuckets()
  let limits: CacheLimits = { maxEntries: 0, maxBytes: 0 }
  const cache = memoryCache({
    get maxEntries() {
      return limits.maxEntries
    },
    get maxBytes() {
      return limits.maxBytes
    },
  })
  const registry = createWorkerRegistry(clock)
  const ttlStore = memoryTtlStore(clock)
  return {
    registry,
    methodsFor: (name, joined) => ({
      take: buckets.take,
      get: cache.get,
      put(group, key, answer, now, currentLimits) {
        limits = currentLimits
        cache.put(group, key, { ...answer, bytes: asBuffer(answer.bytes) }, now)
        return cache.usage()
      },
      drop: (group) => void cache.drop(group),
      clear: () => void cache.clear(),
      usage: cache.usage,
      join(member) {
        registry.join(member)
        joined()
      },
      keep: (session, record) => registry.keep(name, session, record),
      takeOver: (session, unreachable) => registry.takeOver(name, session, unreachable),
      forget: (session) => registry.forget(session),
      keepsake: (key, text, ttlMs) => void ttlStore.set(key, text, ttlMs),
      keepsakeOf: (key, ttlMs) => ttlStore.get(key, ttlMs),
    }),
  }
}

/** Converts received bytes to a Buffer: depending on how a Buffer is copied, it may arrive as a Uint8Array. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export interface WorkerMember {
  readonly name: string
  /** The address where the worker accepts requests forwarded by other workers. */
  readonly address: string
}

interface SessionRecord {
  holder: string
  record: string
  readonly until: number
}

/** How long a session record is kept; longer than the maximum idle time of a session. */
const sessionMs = 2 * 3_600_000
/** Maximum number of session records: up to 10,000 per worker, and those of workers that have exited. */
const maxSessions = 200_000

/** The workers and their addresses, and the session records that let one worker continue another worker's session. */
export function createWorkerRegistry(clock: Clock, { max = maxSessions } = {}) {
  const addresses = new Map<string, string>()
  /** Session records, the least recently updated first. */
  const sessions = new Map<string, SessionRecord>()

  const evict = () => {
    for (const [session, { until }] of sessions) {
      if (until > clock.monotonic() && sessions.size <= max) return
      sessions.delete(session)
    }
  }

  const keep = (holder: string, session: string, record: string) => {
    sessions.delete(session)
    sessions.set(session, { holder, record, until: clock.monotonic() + sessionMs })
    evict()
  }

  return {
    /** Workers that are listening, oldest first. */
    members: (): readonly WorkerMember[] => [...addresses].map(([name, address]) => ({ name, address })),
    join: ({ name, address }: WorkerMember) => void addresses.set(name, address),
    leave: (name: string) => void addresses.delete(name),
    keep,
    takeOver(taker: string, session: string, unreachable: string): TakenOver {
      const known = sessions.get(session)
      if (known === undefined || known.until <= clock.monotonic()) return undefined
      const { holder, record } = known
      const address = holder === taker || holder === unreachable ? undefined : addresses.get(holder)
      if (address !== undefined) return { heldBy: holder, address }
      keep(taker, session, record)
      return { record }
    },
    forget: (session: string) => void sessions.delete(session),
  }
}
