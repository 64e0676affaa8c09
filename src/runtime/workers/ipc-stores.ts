import { createTopicListeners, type Membership, type PubSub, type TopicListeners } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type { Buckets, CacheLimits, CacheLookup, CacheStore, CacheUsage, TtlStore } from '../../core/stores.ts'
import type { RpcPeer } from '../../lib/port-rpc.ts'
import { createSeal } from '../../lib/seal.ts'
import { asBuffer, type PrimaryServiceMethods, type WorkerMember } from './primary-services.ts'

// Stores that the primary holds for all workers. Each store has a fallback for when the primary is not responding.

/** Maximum size of a stored value. Larger values would delay the requests behind them on the channel. */
const maxValueBytes = 1024 * 1024

/** The result of a lookup while the primary is not responding. No entry is ever stored under the empty mark. */
const unavailable: CacheLookup = { mark: '' }

/** The result cache (F13, B10). Caches nothing while the primary is not responding. */
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
      // A value that is too large is not stored, but the previous entry is still removed.
      const stored = answer.bytes.length > maxValueBytes ? { ...answer, bytes: Buffer.alloc(0), ttlMs: 0 } : answer
      usage = (await primary.request('put', group, key, stored, now, { maxEntries, maxBytes })) ?? usage
    },
    async drop(group) {
      // Notifications have no timeout, so this one is delivered even if the primary is slow. The response to the next
      // request proves that the notification was handled.
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

/** Rate limit buckets (F8, B10). While the primary is not responding, each worker counts separately. */
export const ipcBuckets = (primary: RpcPeer<PrimaryServiceMethods>, local: Buckets): Buckets => ({
  take: async (buckets, now) => (await primary.request('take', buckets, now)) ?? local.take(buckets, now),
})

/** A TTL store (B10). It appears empty while the primary is not responding. */
export const ipcTtlStore = (primary: RpcPeer<PrimaryServiceMethods>): TtlStore => ({
  set(key, text, ttlMs) {
    if (text.length <= maxValueBytes) primary.notify('keepsake', key, text, ttlMs)
  },
  get: (key, ttlMs) => primary.request('keepsakeOf', key, ttlMs),
})

/** Primary methods that a worker calls to publish messages. */
export type PublishMethods = {
  spread(topic: string, text: string): void
}

/** Worker methods that the primary calls to deliver a message from another worker. */
export type DeliverMethods = {
  hear(topic: string, text: string): void
}

export function ipcPubSub(primary: RpcPeer<PublishMethods>, log: Log): PubSub & Pick<TopicListeners, 'deliver'> {
  return { ...createTopicListeners(log), publish: (topic, text) => primary.notify('spread', topic, text) }
}

/** Runs in the primary: forwards a message to the other workers. */
export const broadcastTo =
  (others: () => Iterable<{ readonly rpc: RpcPeer<DeliverMethods> }>): PublishMethods['spread'] =>
  (topic, text) => {
    for (const { rpc } of others()) rpc.notify('hear', topic, text)
  }

/** The workers on this machine, as seen by one of them. */
export interface IpcMembership extends Membership, AsyncDisposable {
  join(address: string): Promise<void>
  /** Called by the primary whenever the list of workers changes. */
  update(members: readonly WorkerMember[]): void
  /** The address of the oldest worker, which serves the dashboard; undefined if that is this worker. */
  lead(): string | undefined
}

/** One worker's membership. Only workers know `secret`; `self` is this worker's name, which must never be reused. */
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
    // Nothing to do: the primary notices when this process exits.
    async [Symbol.asyncDispose]() {},
  }
}
