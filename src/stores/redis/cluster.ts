import { randomBytes } from 'node:crypto'
import { type Clock, pausedMs, type Timer } from '../../core/clock.ts'
import { createTopicListeners, type Membership, ownerOf, type PubSub, type TakenOver } from '../../core/cluster.ts'
import type { Log } from '../../core/log.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { listen } from '../../lib/listen.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { Seal } from '../../lib/seal.ts'
import { createScript, type SharedRedis } from './connection.ts'

const heartbeatMs = 1_000
/** A replica that has sent no heartbeat for this long is considered gone. */
const heartbeatTimeoutMs = 4_000
/** How often to ask for a session's holder while Redis is up but slow. */
const maxTakeOverRequests = 3
/** How many ended sessions to remember while Redis is down: as many as a replica may hold. */
const maxEnded = 10_000
/** How long Redis keeps a session; longer than any session may be idle. */
const sessionTtlMs = 2 * 3_600_000

/** Stores a session; returns 0 if another live replica holds it. KEYS: session, replica prefix; ARGV: self, record. */
const keepSession = createScript(`
  local holder = redis.call('HGET', KEYS[1], 'holder')
  if holder and holder ~= ARGV[1] and redis.call('EXISTS', KEYS[2] .. holder) == 1 then return 0 end
  redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'record', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ${sessionTtlMs})
  return 1
`)

/**
 * Takes over a session. Returns the holder and its address, or the record if the session is now ours. A holder with our
 * own address is this replica as it was before a restart, so it is gone. A session without a record belongs to the
 * replica that its id names: the record may be on its way, or lost. KEYS: session, prefix of replicas; ARGV: self, an
 * unreachable replica, our address, the replica in the session's id.
 */
const takeOverSession = createScript(`
  local stored = redis.call('HGET', KEYS[1], 'holder')
  local holder = stored or ARGV[4]
  local address = holder ~= ARGV[1] and holder ~= ARGV[2] and redis.call('GET', KEYS[2] .. holder)
  if address and address ~= ARGV[3] then return { holder, address } end
  if not stored then return false end
  redis.call('HSET', KEYS[1], 'holder', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ${sessionTtlMs})
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
export class RedisMembership implements Membership, AsyncDisposable {
  readonly self: string
  readonly #options: RedisMembershipOptions
  readonly #redis: SharedRedis
  readonly #changes: Disposable
  readonly #listeners = new Set<() => void>()
  /** Ended sessions whose records are still in Redis. Otherwise, a request after the outage would continue them. */
  readonly #toForget = new Map<string, true>()
  #known = new Map<string, string>()
  /** The replicas that had sent a heartbeat when this one last looked. */
  #alive: ReadonlySet<string> = new Set()
  #address: string | undefined
  #timer: Timer | undefined
  #ended = false
  /** The time since which Redis has responded without interruption. After an outage, heartbeats may just be late. */
  #steadySince: number | undefined
  #heldUp = false
  /** A value that the first replica writes and all see. If it changes, Redis has lost its data. */
  #dataId: string | undefined

  constructor(options: RedisMembershipOptions) {
    const { redis, workers } = options
    this.#options = options
    this.#redis = redis
    this.self = workers?.self ?? randomBytes(6).toString('base64url')
    this.#changes = redis.onChange((up) => {
      if (!up) return this.#lost()
      for (const session of [...this.#toForget.keys()]) void this.#forget(session)
      void this.#beat()
    })
  }

  /** Announces the address at which this replica accepts requests. */
  async join(address: string): Promise<void> {
    this.#address = address
    await this.#beat()
  }

  addressOf(replica: string): string | undefined {
    if (replica === this.self) return undefined
    // Once Redis is sure, it decides: the primary does not notice that a worker hangs.
    return this.#known.get(replica) ?? (this.#isSure ? undefined : this.#options.workers?.addressOf(replica))
  }

  readonly isGone = (replica: string): boolean => this.#isSure && !this.#alive.has(replica)

  unreachable(replica: string): void {
    // Keep the replica while Redis is down: otherwise, nothing could read its address or take over its sessions.
    if (!this.#redis.up) return
    this.#known.delete(replica)
    this.#options.workers?.unreachable(replica)
  }

  async keep(session: string, record: string): Promise<boolean> {
    const keys = [this.#at(`session:${session}`), this.#at('replica:')]
    return (await this.#redis.ask((client) => keepSession(client, keys, [this.self, record]))) !== 0
  }

  readonly onReturn = (listener: () => void): Disposable => listen(this.#listeners, listener)

  async takeOver(session: string, unreachable = ''): Promise<TakenOver> {
    if (this.#toForget.has(session)) return undefined
    const keys = [this.#at(`session:${session}`), this.#at('replica:')]
    const values = [this.self, unreachable, this.#address ?? '', ownerOf(session)]
    const request = () => this.#redis.ask((client) => takeOverSession(client, keys, values))
    let reply = await request()
    // A slow response does not mean that the session is unknown. Taking it over twice changes nothing.
    for (let sent = 1; reply === undefined && this.#redis.up && sent < maxTakeOverRequests; sent++)
      reply = await request()
    const [first, address] = (reply as readonly string[] | null | undefined) ?? []
    if (first === undefined) return undefined
    if (address === undefined) return { record: first }
    // Remember the holder, which may have only just joined.
    this.#known.set(first, address)
    return { heldBy: first, address }
  }

  readonly forget = (session: string): void => void this.#forget(session)

  readonly sign = (text: string): string => this.#options.seal.close(text, 'fleet')

  readonly verify = (signed: string): string | undefined => this.#options.seal.open(signed, 'fleet')

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    this.#changes[Symbol.dispose]()
    this.#timer?.[Symbol.dispose]()
    // Remove this replica, so that others do not wait for its heartbeat to expire.
    await this.#remove([this.self])
  }

  /** Whether every replica that runs has had the time to send a heartbeat. */
  get #isSure(): boolean {
    return this.#steadySince !== undefined && this.#options.clock.monotonic() - this.#steadySince >= heartbeatTimeoutMs
  }

  readonly #at = (name: string): string => `${this.#redis.prefix}{fleet}:${name}`

  async #forget(session: string): Promise<void> {
    setBounded(this.#toForget, session, true, maxEnded)
    const isGone = await this.#redis.ask((client) => client.del(this.#at(`session:${session}`)))
    if (isGone !== undefined) this.#toForget.delete(session)
  }

  #lost(): void {
    this.#steadySince = undefined
    this.#heldUp = true
  }

  async #beat(): Promise<void> {
    const address = this.#address
    const names = await this.#redis.ask(async (client) => {
      if (address !== undefined) {
        const line = client
          .multi()
          .set(this.#at(`replica:${this.self}`), address, 'PX', heartbeatTimeoutMs)
          .sadd(this.#at('replicas'), this.self)
          // Replicas remove the names of those that are gone, but the last one to be killed has nobody to do that.
          .pexpire(this.#at('replicas'), sessionTtlMs)
          .set(this.#at('data'), randomBytes(12).toString('base64url'), 'PX', sessionTtlMs, 'NX')
          .pexpire(this.#at('data'), sessionTtlMs)
          .get(this.#at('data'))
        const id = (await line.exec())?.at(-1)?.[1]
        if (this.#dataId !== undefined && id !== this.#dataId) this.#lost()
        this.#dataId = typeof id === 'string' ? id : undefined
      }
      return client.smembers(this.#at('replicas'))
    })
    if (names === undefined) this.#lost()
    else if (names.length > 0) await this.#look(names)
    this.#timer?.[Symbol.dispose]()
    if (!this.#ended) this.#timer = this.#options.clock.after(heartbeatMs, () => this.#beatAgain(), { promptly: true })
  }

  /**
   * Sends the next heartbeat. A pause in this process counts as a Redis outage: other replicas may consider this one
   * gone, and replicas that were also paused have not sent a heartbeat yet.
   */
  #beatAgain(): void {
    if ((this.#timer?.lateMs ?? 0) >= pausedMs) this.#lost()
    void this.#beat()
  }

  async #look(names: readonly string[]): Promise<void> {
    const addresses = await this.#redis.ask((client) => client.mget(names.map((name) => this.#at(`replica:${name}`))))
    if (addresses === undefined) return this.#lost()
    this.#steadySince ??= this.#options.clock.monotonic()
    const sure = this.#isSure
    const found = new Map<string, string>()
    const missing: string[] = []
    /** Names that this replica had before a restart; they are registered with our address. */
    const former: string[] = []
    for (const [index, name] of names.entries()) {
      const place = addresses[index]
      if (typeof place !== 'string') missing.push(name)
      else if (place === this.#address && name !== this.self) former.push(name)
      else found.set(name, place)
    }
    this.#alive = new Set(found.keys())
    this.#known = sure ? found : new Map([...this.#known, ...found])
    for (const name of former) this.#known.delete(name)
    if (former.length > 0) await this.#remove(former)
    if (sure && missing.length > 0) await this.#redis.ask((client) => client.srem(this.#at('replicas'), ...missing))
    if (this.#heldUp) for (const listener of this.#listeners) listener()
    this.#heldUp = false
  }

  #remove(names: readonly string[]) {
    const keys = names.map((name) => this.#at(`replica:${name}`))
    return this.#redis.ask((client) => {
      const line = client.multi().del(keys)
      return line.srem(this.#at('replicas'), ...names).exec()
    })
  }
}

/** The channel of all messages between replicas. */
export const pubSubChannel = ({ prefix }: Pick<SharedRedis, 'prefix'>): string => `${prefix}bulletin`

/** Broadcast through a Redis channel. Messages are sealed, so those written without the secret have no effect. */
export function redisPubSub(options: { redis: SharedRedis; self: string; seal: Seal; log: Log }) {
  const { redis, self, seal, log } = options
  const channel = pubSubChannel(redis)
  const listeners = createTopicListeners(log)
  const subscription = redis.subscribe([channel], (_, sealed) => {
    const opened = seal.open(sealed, 'bulletin')
    // Not an error: all databases on a Redis server share channels, and another cluster may use another database.
    if (opened === undefined) return log.debug({ channel }, 'ignored a message in Redis that is not from this cluster')
    const [from, topic, text] = jsonValue(opened) as [string, string, string]
    if (from !== self) listeners.deliver(topic, text)
  })
  const pubSub: PubSub = {
    publish(topic, text) {
      const sealed = seal.close(JSON.stringify([self, topic, text]), 'bulletin')
      void redis.ask((client) => client.publish(channel, sealed))
    },
    subscribe: listeners.subscribe,
  }
  return { ...pubSub, [Symbol.asyncDispose]: () => subscription[Symbol.asyncDispose]() }
}
