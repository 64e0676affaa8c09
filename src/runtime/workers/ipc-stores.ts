import type { Buckets } from '../../core/buckets.ts'
import type { CacheLimits, CacheStore, CacheUsage, Found } from '../../core/cache.ts'
import type { Log } from '../../core/log.ts'
import type { Membership } from '../../core/membership.ts'
import { createTopicListeners, type PubSub, type TopicListeners } from '../../core/pub-sub.ts'
import type { TtlStore } from '../../core/ttl-store.ts'
import { createSeal } from '../../lib/seal.ts'
import type { Line } from './line.ts'
import { asBuffer, type PrimaryServiceMethods, type WorkerMember } from './primary-services.ts'

/** A mark that nothing is ever kept under. */
const away: Found = { mark: '' }

/** Larger answers would hold up everybody's questions on their way: they are asked for anew each time. */
const maxValueBytes = 1024 * 1024

/** Results that all workers share (F13, B10). While the first process does not answer, nothing is kept. */
export function ipcCache(line: Line<PrimaryServiceMethods>, limits: CacheLimits): CacheStore {
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

/** Buckets that all workers draw from (F8, B10). While the first process does not answer, each counts alone. */
export function ipcBuckets(line: Line<PrimaryServiceMethods>, local: Buckets): Buckets {
  return {
    take: async (buckets, now) => (await line.ask('take', buckets, now)) ?? local.take(buckets, now),
  }
}

/** Larger ones would hold up everybody's questions on their way. */
const longest = 1024 * 1024

/** Keepsakes that all workers find (B10). While the first process does not answer there are none. */
export function ipcTtlStore(line: Line<PrimaryServiceMethods>): TtlStore {
  return {
    set(key, text, ttlMs) {
      if (text.length <= longest) line.tell('keepsake', key, text, ttlMs)
    },
    get: (key, ttlMs) => line.ask('keepsakeOf', key, ttlMs),
  }
}

/** What the first process does for a worker that tells something. */
export type PublishMethods = {
  spread(topic: string, text: string): void
}

/** What a worker is told by the first process. */
export type DeliverMethods = {
  hear(topic: string, text: string): void
}

/** What one worker tells all the others, by way of the first process. */
export function ipcPubSub(line: Line<PublishMethods>, log: Log): PubSub & Pick<TopicListeners, 'deliver'> {
  return { ...createTopicListeners(log), publish: (topic, text) => line.tell('spread', topic, text) }
}

/** In the first process: passes on what a worker tells. */
export const broadcastTo = (
  others: () => Iterable<{ readonly line: Line<DeliverMethods> }>,
): PublishMethods['spread'] => {
  return (topic, text) => {
    for (const { line } of others()) line.tell('hear', topic, text)
  }
}

/** The workers of one machine, as one of them sees it. */
export interface IpcMembership extends Membership, AsyncDisposable {
  /** Tells the others where this one takes requests. */
  join(address: string): Promise<void>
  /** Those that take requests have changed. */
  heard(members: readonly WorkerMember[]): void
  /** Where the oldest other one takes requests, which answers what only one can; undefined where that is this one. */
  lead(): string | undefined
}

/** `secret` is what all workers share, and nobody else knows; `self` is a name that no worker had before. */
export function ipcMembership(line: Line<PrimaryServiceMethods>, secret: string, self: string): IpcMembership {
  const seal = createSeal(secret)
  let members: readonly WorkerMember[] = []

  return {
    self,
    join: async (address) => void (await line.ask('join', { name: self, address })),
    heard(now) {
      members = now
    },
    lead: () => (members[0]?.name === self ? undefined : members[0]?.address),
    addressOf: (replica) => (replica === self ? undefined : members.find(({ name }) => name === replica)?.address),
    unreachable(replica) {
      members = members.filter(({ name }) => name !== replica)
    },
    async keep(session, record) {
      line.tell('keep', session, record)
      return true
    },
    takeOver: (session, unreachable = '') => line.ask('takeOver', session, unreachable),
    forget: (session) => line.tell('forget', session),
    sign: (text) => seal.close(text, 'fleet'),
    verify: (signed) => seal.open(signed, 'fleet'),
    // The first process sees that it is gone.
    async [Symbol.asyncDispose]() {},
  }
}
