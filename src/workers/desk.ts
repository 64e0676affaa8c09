import type { Bucket, Buckets, Taken } from '../core/buckets.ts'
import type { Answer, CacheLimits, CacheStore, CacheUsage, Found } from '../core/cache.ts'
import type { Clock } from '../core/clock.ts'
import type { TakenOver } from '../core/membership.ts'
import { memoryBuckets } from '../stores/buckets.ts'
import { memoryCache } from '../stores/cache.ts'
import { memoryTtlStore } from '../stores/ttl-store.ts'
import { createRegistry, type Member, type Registry } from './registry.ts'

/** What workers can ask the first process for. */
export type DeskAnswers = {
  take(buckets: readonly Bucket[], now: number): Taken | Promise<Taken>
  get(group: string, key: string, now: number): Found | Promise<Found>
  /** With the limits of the configuration in force, which only workers know. */
  put(group: string, key: string, answer: Answer, now: number, limits: CacheLimits): CacheUsage
  drop(group: string): void
  clear(): void
  usage(): CacheUsage
  join(member: Member): void
  keep(session: string, record: string): void
  takeOver(session: string, unreachable: string): TakenOver
  forget(session: string): void
  keepsake(key: string, text: string, ttlMs: number): void
  keepsakeOf(key: string, ttlMs: number): string | undefined | Promise<string | undefined>
}

/** Holds what the workers of one machine share. */
export interface Desk {
  readonly registry: Registry
  /** The answers for one worker; `joined` hears where it takes requests. */
  answersFor(name: string, joined: () => void): DeskAnswers
}

export function createDesk(clock: Clock): Desk {
  const buckets: Buckets = memoryBuckets()
  let limits: CacheLimits = { maxEntries: 0, maxBytes: 0 }
  const cache: CacheStore = memoryCache({
    get maxEntries() {
      return limits.maxEntries
    },
    get maxBytes() {
      return limits.maxBytes
    },
  })
  const registry = createRegistry(clock)
  const ttlStore = memoryTtlStore(clock)
  return {
    registry,
    answersFor: (name, joined) => ({
      take: (asked, now) => buckets.take(asked, now),
      get: (group, key, now) => cache.get(group, key, now),
      put(group, key, answer, now, present) {
        limits = present
        cache.put(group, key, { ...answer, bytes: asBuffer(answer.bytes) }, now)
        return cache.usage()
      },
      drop: (group) => void cache.drop(group),
      clear: () => void cache.clear(),
      usage: () => cache.usage(),
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

/** Some ways of copying between processes make plain bytes of a buffer. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
