import { createTopicListeners, type Membership, type PubSub, type TopicListeners } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits, CacheLookup, CacheStore, CacheUsage, TtlStore } from '../../core/stores.ts'
import type { RpcPeer } from '../../lib/port-rpc.ts'
import { createSeal } from '../../lib/seal.ts'
import { asBuffer, type PrimaryServiceMethods, type WorkerMember } from './primary-services.ts'

// Stores that all workers share, held by the primary. Each has a fallback while the primary does not respond.

/** Larger values would delay the requests behind them on the channel. */
const maxValueBytes = 1024 * 1024

/** No entry is ever stored under this mark. */
const unavailable: CacheLookup = { mark: '' }

/** The result cache (F13, B10). Caches nothing while the primary does not respond. */
export function ipcCache(primary: RpcPeer<PrimaryServiceMethods>, limits: CacheLimits): CacheStore {
  let usage: CacheUsage = { entries: 0, bytes: 0, evicted: 0 }
  const readUsage = async () => {
    usage = (await primary.request('usage')) ?? usage
  }
  return {
    async get(group, key, now) {
      const found = await primary.request('get', group, key, now)
      if (found?.bytes === undefined) return found ?? unavailable
      return { bytes: asBuffer(found.bytes), mark: found.mark }
    },
    async put(group, key, answer, now) {
      const { maxEntries, maxBytes } = limits
      // A value that is too large still replaces the entry before it.
      const stored = answer.bytes.length > maxValueBytes ? { ...answer, bytes: Buffer.alloc(0), ttlMs: 0 } : answer
      usage = (await primary.request('put', group, key, stored, now, { maxEntries, maxBytes })) ?? usage
    },
    async drop(group) {
      // A notification has no timeout, so it always arrives; the response to the next request proves that it has.
      primary.notify('drop', group)
      await readUsage()
    },
    async clear() {
      primary.notify('clear')
      await readUsage()
    },
    usage: () => usage,
  }
}

/** Rate limit buckets (F8, B10). Each worker counts alone while the primary does not respond. */
export const ipcBuckets = (primary: RpcPeer<PrimaryServiceMethods>, local: Buckets): Buckets => ({
  take: async (buckets, now) => (await primary.request('take', buckets, now)) ?? local.take(buckets, now),
})

/** A TTL store (B10). It appears empty while the primary does not respond. */
export const ipcTtlStore = (primary: RpcPeer<PrimaryServiceMethods>): TtlStore => ({
  set(key, text, ttlMs) {
    if (text.length <= maxValueBytes) primary.notify('keepsake', key, text, ttlMs)
  },
  get: (key, ttlMs) => primary.request('keepsakeOf', key, ttlMs),
})

/** Called by a worker that publishes. */
export type PublishMethods = {
  spread(topic: string, text: string): void
}

/** Called by the primary in all other workers. */
export type DeliverMethods = {
  hear(topic: string, text: string): void
}

export function ipcPubSub(primary: RpcPeer<PublishMethods>, log: Log): PubSub & Pick<TopicListeners, 'deliver'> {
  return { ...createTopicListeners(log), publish: (topic, text) => primary.notify('spread', topic, text) }
}

/** The primary's side: forwards a message to the other workers. */
export const broadcastTo =
  (others: () => Iterable<{ readonly rpc: RpcPeer<DeliverMethods> }>): PublishMethods['spread'] =>
  (topic, text) => {
    for (const { rpc } of others()) rpc.notify('hear', topic, text)
  }

/** The workers of this machine, as seen by one of them. */
export interface IpcMembership extends Membership, AsyncDisposable {
  join(address: string): Promise<void>
  /** The primary sends the list whenever it changes. */
  update(members: readonly WorkerMember[]): void
  /** The address of the oldest worker, which serves the dashboard; undefined if that is this worker. */
  lead(): string | undefined
}

/** Only workers have `secret`; `self` must never be reused. */
export function ipcMembership(primary: RpcPeer<PrimaryServiceMethods>, secret: string, self: string): IpcMembership {
  const seal = createSeal(secret)
  let members: readonly WorkerMember[] = []

  return {
    self,
    join: async (address) => void (await primary.request('join', { name: self, address })),
    update(latest) {
      members = latest
    },
    lead: () => (members[0]?.name === self ? undefined : members[0]?.address),
    addressOf: (replica) => (replica === self ? undefined : members.find(({ name }) => name === replica)?.address),
    unreachable(replica) {
      members = members.filter(({ name }) => name !== replica)
    },
    async keep(session, record) {
      primary.notify('keep', session, record)
      return true
    },
    takeOver: (session, unreachable = '') => primary.request('takeOver', session, unreachable),
    forget: (session) => primary.notify('forget', session),
    sign: (text) => seal.close(text, 'fleet'),
    verify: (signed) => seal.open(signed, 'fleet'),
    // The primary notices when this process exits.
    async [Symbol.asyncDispose]() {},
  }
}
