import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type Clock, pausedMs, type Timer } from '../../core/clock.ts'
import { createTopicListeners, type Membership, ownerOf, type PubSub, type TakenOver } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { listen } from '../../lib/listen.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { Seal } from '../../lib/seal.ts'
import { createScript, type SharedRedis } from './connection.ts'

const beatMs = 1_000
/** A replica that has sent no heartbeat for this long is considered gone. */
const heartbeatTimeoutMs = 4_000
/** How often to ask for a session's holder while Redis is up but slow. */
const maxRequests = 3
/** How many ended sessions to remember while Redis is down: as many as a replica may hold. */
const maxEnded = 10_000
/** How long Redis keeps a session; longer than any session may be idle. */
const sessionMs = 2 * 3_600_000

/** Stores a session; returns 0 if another live replica holds it. KEYS: session, replica prefix; ARGV: self, record. */
const keep = createScript(`
  local holder = redis.call('HGET', KEYS[1], 'holder')
  if holder and holder ~= ARGV[1] and redis.call('EXISTS', KEYS[2] .. holder) == 1 then return 0 end
  redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'record', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ${sessionMs})
  return 1
`)

/**
 * Takes over a session. Returns the holder and its address, or the record if the session is now ours. A holder with our
 * own address is this replica as it was before a restart, so it is gone. A session without a record belongs to the
 * replica that its id names: the record may be on its way, or lost. KEYS: session, prefix of replicas; ARGV: self, an
 * unreachable replica, our address, the replica in the session's id.
 */
const takeOver = createScript(`
  local stored = redis.call('HGET', KEYS[1], 'holder')
  local holder = stored or ARGV[4]
  local address = holder ~= ARGV[1] and holder ~= ARGV[2] and redis.call('GET', KEYS[2] .. holder)
  if address and address ~= ARGV[3] then return { holder, address } end
  if not stored then return false end
  redis.call('HSET', KEYS[1], 'holder', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ${sessionMs})
  return { redis.call('HGET', KEYS[1], 'record') }
`)

export interface RedisMembershipOptions {
  readonly redis: SharedRedis
  readonly clock: Clock
  /** A seal whose secret all replicas share, for signatures. */
  readonly seal: Seal
  /** The workers on this machine, of which this replica is one; they know one another without Redis. */
  readonly workers?: Pick<Membership, 'self' | 'addressOf' | 'unreachable'> | undefined
}

/** Joins the replicas that share a Redis. While it is down, the last known replicas are assumed to be running. */
export function redisMembership({ redis, clock, seal, workers }: RedisMembershipOptions): RedisMembership {
  const self = workers?.self ?? randomBytes(6).toString('base64url')
  const at = (name: string) => `${redis.prefix}{fleet}:${name}`
  let known = new Map<string, string>()
  /** The replicas that had sent a heartbeat when this one last looked. */
  let alive: ReadonlySet<string> = new Set()
  let address: string | undefined
  let timer: Timer | undefined
  let ended = false
  /** The time since which Redis has responded without interruption. After an outage, heartbeats may just be late. */
  let steadySince: number | undefined
  let heldUp = false
  /** A value that the first replica writes and all see. If it changes, Redis has lost its data. */
  let dataId: string | undefined
  /** Whether every replica that runs has had the time to send a heartbeat. */
  const isSure = () => steadySince !== undefined && clock.monotonic() - steadySince >= heartbeatTimeoutMs
  const listeners = new Set<() => void>()
  /** Ended sessions whose records are still in Redis. Otherwise, a request after the outage would continue them. */
  const toForget = new Map<string, true>()
  const forget = async (session: string) => {
    setBounded(toForget, session, true, maxEnded)
    if ((await redis.ask((client) => client.del(at(`session:${session}`)))) !== undefined) toForget.delete(session)
  }

  const lost = () => {
    steadySince = undefined
    heldUp = true
  }
  const changes = redis.onChange((up) => {
    if (!up) return lost()
    for (const session of [...toForget.keys()]) void forget(session)
    void beat()
  })

  const beat = async () => {
    const mine = address
    const names = await redis.ask(async (client) => {
      if (mine !== undefined) {
        const line = client
          .multi()
          .set(at(`replica:${self}`), mine, 'PX', heartbeatTimeoutMs)
          .sadd(at('replicas'), self)
          // Replicas remove the names of those that are gone, but the last one to be killed has nobody to do that.
          .pexpire(at('replicas'), sessionMs)
          .set(at('data'), randomBytes(12).toString('base64url'), 'PX', sessionMs, 'NX')
          .pexpire(at('data'), sessionMs)
          .get(at('data'))
        const id = (await line.exec())?.at(-1)?.[1]
        if (dataId !== undefined && id !== dataId) lost()
        dataId = typeof id === 'string' ? id : undefined
      }
      return client.smembers(at('replicas'))
    })
    if (names === undefined) lost()
    else if (names.length > 0) await look(names)
    timer?.[Symbol.dispose]()
    if (!ended) timer = clock.after(beatMs, next, { promptly: true })
  }

  /**
   * Sends the next heartbeat. A pause in this process counts as a Redis outage: other replicas may consider this one
   * gone, and replicas that were also paused have not sent a heartbeat yet.
   */
  const next = () => {
    if ((timer?.lateMs ?? 0) >= pausedMs) lost()
    void beat()
  }

  const look = async (names: readonly string[]) => {
    const addresses = await redis.ask((client) => client.mget(names.map((name) => at(`replica:${name}`))))
    if (addresses === undefined) return lost()
    steadySince ??= clock.monotonic()
    const sure = isSure()
    const found = new Map<string, string>()
    const missing: string[] = []
    /** Names that this replica had before a restart; they are registered with our address. */
    const former: string[] = []
    names.forEach((name, index) => {
      const place = addresses[index]
      if (typeof place !== 'string') missing.push(name)
      else if (place === address && name !== self) former.push(name)
      else found.set(name, place)
    })
    alive = new Set(found.keys())
    known = sure ? found : new Map([...known, ...found])
    for (const name of former) known.delete(name)
    if (former.length > 0) await redis.ask((client) => removing(client, former))
    if (sure && missing.length > 0) await redis.ask((client) => client.srem(at('replicas'), ...missing))
    if (heldUp) for (const listener of listeners) listener()
    heldUp = false
  }

  const removing = (client: Redis, names: readonly string[]) =>
    client
      .multi()
      .del(names.map((name) => at(`replica:${name}`)))
      .srem(at('replicas'), ...names)
      .exec()

  return {
    self,
    async join(own) {
      address = own
      await beat()
    },
    addressOf(replica) {
      if (replica === self) return undefined
      // Once Redis is sure, it decides: the primary does not notice that a worker hangs.
      return known.get(replica) ?? (isSure() ? undefined : workers?.addressOf(replica))
    },
    isGone: (replica) => isSure() && !alive.has(replica),
    unreachable(replica) {
      // Keep the replica while Redis is down: otherwise, nothing could read its address or take over its sessions.
      if (!redis.up) return
      known.delete(replica)
      workers?.unreachable(replica)
    },
    async keep(session, record) {
      const keys = [at(`session:${session}`), at('replica:')]
      return (await redis.ask((client) => keep(client, keys, [self, record]))) !== 0
    },
    onReturn: (listener) => listen(listeners, listener),
    async takeOver(session, unreachable = '') {
      if (toForget.has(session)) return undefined
      const keys = [at(`session:${session}`), at('replica:')]
      const values = [self, unreachable, address ?? '', ownerOf(session)]
      const request = () => redis.ask((client) => takeOver(client, keys, values))
      let reply = await request()
      // A slow response does not mean that the session is unknown. Taking it over twice changes nothing.
      for (let sent = 1; reply === undefined && redis.up && sent < maxRequests; sent++) reply = await request()
      const taken = readTakenOver(reply as readonly string[] | null | undefined)
      // Remember the holder, which may have only just joined.
      if (taken && 'heldBy' in taken) known.set(taken.heldBy, taken.address)
      return taken
    },
    forget: (session) => void forget(session),
    sign: (text) => seal.close(text, 'fleet'),
    verify: (signed) => seal.open(signed, 'fleet'),
    async [Symbol.asyncDispose]() {
      ended = true
      changes[Symbol.dispose]()
      timer?.[Symbol.dispose]()
      // Remove this replica, so that others do not wait for its heartbeat to expire.
      await redis.ask((client) => removing(client, [self]))
    },
  }
}

function readTakenOver(reply: readonly string[] | null | undefined): TakenOver {
  const [first, address] = reply ?? []
  if (first === undefined) return undefined
  return address === undefined ? { record: first } : { heldBy: first, address }
}

export interface RedisMembership extends Membership, AsyncDisposable {
  /** Announces the address at which this replica accepts requests. */
  join(address: string): Promise<void>
}

export interface RedisPubSubOptions {
  readonly redis: SharedRedis
  readonly self: string
  /** A seal whose secret all replicas share. */
  readonly seal: Seal
  readonly log: Log
}

/** The channel of all messages between replicas. */
export const pubSubChannel = ({ prefix }: Pick<SharedRedis, 'prefix'>): string => `${prefix}bulletin`

/** Broadcast through a Redis channel. Messages are sealed, so those written without the secret have no effect. */
export function redisPubSub({ redis, self, seal, log }: RedisPubSubOptions): PubSub & AsyncDisposable {
  const channel = pubSubChannel(redis)
  const listeners = createTopicListeners(log)
  const subscription = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not an error: all databases on a Redis server share channels, and another cluster may use another database.
    if (opened === undefined) return log.debug({ channel }, 'ignored a message in Redis that is not from this cluster')
    const [from, topic, text] = jsonValue(opened) as [string, string, string]
    if (from !== self) listeners.deliver(topic, text)
  })
  return {
    publish(topic, text) {
      const sealed = seal.close(JSON.stringify([self, topic, text]), 'bulletin')
      void redis.ask((client) => client.publish(channel, sealed))
    },
    subscribe: listeners.subscribe,
    [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose](),
  }
}
