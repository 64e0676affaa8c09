import { type Clock, systemClock } from '../../core/clock.ts'
import {
  createTopicListeners,
  type Membership,
  type PubSub,
  type TakenOver,
  type TopicListeners,
} from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import type {
  Bucket,
  Buckets,
  CachedAnswer,
  CacheLimits,
  CacheLookup,
  CacheStore,
  CacheUsage,
  Taken,
  TtlStore,
} from '../../core/stores.ts'
import type { RpcPeer } from '../../lib/port-rpc.ts'
import { createSeal } from '../../lib/seal.ts'
import { callAllowed, limitWindowMs, memoryBuckets } from '../../stores/buckets.ts'
import { memoryCache } from '../../stores/cache.ts'
import { createRoom, memoryTtlStore } from '../../stores/ttl-store.ts'

// Stores that the primary holds for all workers. Each store has a fallback for when the primary is not responding.

/** Maximum size of a stored value. Larger values would delay the requests behind them on the channel. */
const maxValueBytes = 1024 * 1024

/** The result of a lookup while the primary is not responding. No entry is ever stored under the empty mark. */
const unavailableLookup: CacheLookup = { mark: '' }

/** The result cache (F13, B10). Caches nothing while the primary is not responding. */
export function ipcCache(primary: RpcPeer<PrimaryServiceMethods>, limits: CacheLimits): CacheStore {
  let usage: CacheUsage = { entries: 0, bytes: 0, evicted: 0 }
  const readUsage = async () => {
    usage = (await primary.request('usage')) ?? usage
  }
  return {
    async get(group, key, now) {
      const found = await primary.request('get', group, key, now)
      if (found?.bytes === undefined) return found ?? unavailableLookup
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

/** How long a worker may use calls that it has leased. */
const callLeaseMs = 100

interface CallLease {
  left: number
  readonly until: number
}

/**
 * Rate limit buckets (F8, B10). A worker leases calls of high limits from the primary, as many as a limit allows in
 * 100 ms, and counts those itself (0110). While the primary is not responding, each worker counts separately.
 */
export function ipcBuckets(primary: RpcPeer<PrimaryServiceMethods>, local: Buckets, clock = systemClock): Buckets {
  const leases = new Map<string, CallLease>()
  const requests = new Map<string, Promise<Taken>>()

  const request = async (buckets: readonly Bucket[], now: number, key = '', calls = 0): Promise<Taken> => {
    const taken = await primary.request('take', buckets, now, calls)
    if (taken === undefined) return local.take(buckets, now)
    const { lease: left = 0, ...answer } = taken
    if (left === 0) return answer
    const lease = { left, until: now + callLeaseMs }
    leases.set(key, lease)
    clock.after(callLeaseMs, () => {
      if (leases.get(key) === lease) leases.delete(key)
      if (lease.left > 0) primary.notify('giveBack', buckets, lease.left, lease.until)
      lease.left = 0
    })
    return answer
  }

  const takeLeased = (key: string, now: number): Taken | undefined => {
    const lease = leases.get(key)
    if (lease === undefined || lease.left === 0 || now > lease.until) return undefined
    lease.left--
    return callAllowed
  }

  return {
    take(buckets, now) {
      let key = ''
      let lowest = Number.POSITIVE_INFINITY
      for (const bucket of buckets) {
        key += `${bucket.key}\n${bucket.perMinute}\n`
        lowest = Math.min(lowest, bucket.perMinute)
      }
      const calls = Math.floor((lowest * callLeaseMs) / limitWindowMs)
      if (calls < 2) return request(buckets, now)
      const taken = takeLeased(key, now)
      if (taken) return taken
      // One request leases for all calls that arrive meanwhile.
      const requested = requests.get(key)
      if (requested) return requested.then(() => takeLeased(key, now) ?? request(buckets, now))
      const leasing = request(buckets, now, key, calls).finally(() => requests.delete(key))
      requests.set(key, leasing)
      return leasing
    },
  }
}

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

/** The state that the workers on one machine share: rate limits, cache, sessions, membership. */
export class PrimaryServices {
  readonly registry: ReturnType<typeof createWorkerRegistry>
  readonly #buckets = memoryBuckets()
  readonly #limits = { maxEntries: 0, maxBytes: 0 }
  readonly #cache = memoryCache(this.#limits)
  readonly #ttlStore: TtlStore

  constructor(clock: Clock) {
    this.registry = createWorkerRegistry(clock)
    this.#ttlStore = memoryTtlStore(clock)
  }

  /** The methods that the worker named `name` calls. `joined` is called when that worker starts listening. */
  methodsFor(name: string, joined: () => void) {
    const registry = this.registry
    const cache = this.#cache
    const ttlStore = this.#ttlStore
    const buckets = this.#buckets
    return {
      take(from: readonly Bucket[], now: number, calls = 0): Taken & { readonly lease?: number } {
        const taken = buckets.take(from, now) as Taken
        if (!taken.allowed || calls === 0) return taken
        return { ...taken, lease: buckets.lease(from, calls, now + callLeaseMs) }
      },
      giveBack: buckets.giveBack,
      get: cache.get,
      /** `limits` come from the current configuration, which only workers load. */
      put: (group: string, key: string, answer: CachedAnswer, now: number, limits: CacheLimits): CacheUsage => {
        Object.assign(this.#limits, limits)
        cache.put(group, key, { ...answer, bytes: asBuffer(answer.bytes) }, now)
        return cache.usage()
      },
      drop: (group: string): void => void cache.drop(group),
      clear: (): void => void cache.clear(),
      usage: cache.usage,
      join(member: WorkerMember): void {
        registry.join(member)
        joined()
      },
      keep: (session: string, record: string): void => registry.keep(name, session, record),
      takeOver: (session: string, unreachable: string) => registry.takeOver(name, session, unreachable),
      forget: (session: string) => registry.forget(session),
      keepsake: (key: string, text: string, ttlMs: number): void => void ttlStore.set(key, text, ttlMs),
      keepsakeOf: (key: string, ttlMs: number) => ttlStore.get(key, ttlMs),
    }
  }
}

export type PrimaryServiceMethods = ReturnType<PrimaryServices['methodsFor']>

/** Converts received bytes to a Buffer: depending on how a Buffer is copied, it may arrive as a Uint8Array. */
const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export interface WorkerMember {
  readonly name: string
  /** The address where the worker accepts requests forwarded by other workers. */
  readonly address: string
}

/** How long a session record is kept; longer than the maximum idle time of a session. */
const sessionRecordMs = 2 * 3_600_000
/** Maximum number of session records: up to 10,000 per worker, and those of workers that have exited. */
const maxSessions = 200_000

/** The workers and their addresses, and the session records that let one worker continue another worker's session. */
export function createWorkerRegistry(clock: Clock, { max = maxSessions } = {}) {
  const addresses = new Map<string, string>()
  const sessions = new Map<string, { readonly holder: string; readonly record: string }>()
  const room = createRoom(max, clock, (session) => sessions.delete(session))

  const keep = (holder: string, session: string, record: string) => {
    sessions.set(session, { holder, record })
    room.take(session, 1, sessionRecordMs)
  }

  return {
    /** Workers that are listening, oldest first. */
    members: (): readonly WorkerMember[] => [...addresses].map(([name, address]) => ({ name, address })),
    join: ({ name, address }: WorkerMember) => void addresses.set(name, address),
    leave: (name: string) => void addresses.delete(name),
    keep,
    takeOver(taker: string, session: string, unreachable: string): TakenOver {
      const known = room.has(session) ? sessions.get(session) : undefined
      if (known === undefined) return undefined
      const { holder, record } = known
      const address = holder === taker || holder === unreachable ? undefined : addresses.get(holder)
      if (address !== undefined) return { heldBy: holder, address }
      keep(taker, session, record)
      return { record }
    },
    forget(session: string): void {
      sessions.delete(session)
      room.leave(session)
    },
  }
}
