import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import { listen } from '../../lib/listen.ts'
import { failureReason } from '../../lib/message-text.ts'

export interface RedisOptions {
  readonly url: string
  readonly prefix?: string
  readonly clock: Clock
  readonly log: Log
}

/** The timeout for a request. A slower response is of no use to a call. */
const redisTimeoutMs = 500
/** After this many timeouts in a row, Redis counts as down even if the connection is open. */
const maxUnanswered = 3
const redisProbeMs = 1_000
/** How often connections that only receive messages are checked. */
const subscriberProbeMs = 10_000
/** After this many probes without a response, the connection is replaced: its packets may be dropped silently. */
const maxUnansweredProbes = 2
/** The timeout for the TCP connection, and again for the first commands on it. */
const redisConnectMs = 2_000
const redisStartMs = 2_000
const maxReconnectPauseMs = 2_000

/** Connects and reconnects in the background: neither this function nor calls wait for a connection. */
export async function connectRedis(options: RedisOptions): Promise<SharedRedis> {
  // Loaded only if Redis is configured; most gateways run without it.
  const { Redis: Client } = await import('ioredis')
  return new SharedRedis(Client, options)
}

/** A connection to Redis or Valkey, which may be unavailable, so callers need a fallback. */
export class SharedRedis implements AsyncDisposable {
  /** Key prefix, so that several clusters can share one Redis. */
  readonly prefix: string
  /** The address without credentials, for display. */
  readonly where: string
  up = false
  /** Why Redis is down, without a password; undefined while it is up or the first connection is being opened. */
  problem: string | undefined
  readonly #options: RedisOptions
  readonly #Client: typeof Redis
  readonly #client: Redis
  readonly #subscribers = new Set<Redis>()
  readonly #listeners = new Set<(up: boolean) => void>()
  /** What was logged about the problem since Redis was last up. */
  readonly #logged = new Set<string>()
  /** Why the current connection cannot be opened, or was closed. */
  #failure: string | undefined
  #unanswered = 0
  #unansweredProbes = 0
  /** Whether a new connection may help: packets are dropped silently, or another server has become the master. */
  #replace = false
  #probe: Disposable | undefined
  #checking: Promise<void> | undefined
  #ended = false

  constructor(Client: typeof Redis, options: RedisOptions) {
    this.#Client = Client
    this.#options = options
    this.prefix = options.prefix ?? 'toolway:'
    this.where = new URL(options.url).host
    this.#client = this.#open((reason) => {
      this.#failure = reason
    })
    this.#client.on('ready', () => {
      this.#responded()
      this.#failure = undefined
      void this.#check()
    })
    this.#client.on('close', () => this.#settle(false, this.#failure ?? this.problem ?? 'connection closed'))
  }

  /** Runs a command; undefined if Redis is unavailable or too slow. Never rejects. */
  async ask<T>(command: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    if (!this.up) return undefined
    try {
      const answer = await this.#inTime(command(this.#client))
      this.#unanswered = 0
      return answer
    } catch (thrown) {
      const refusal = errorReply(thrown)
      if (refusal !== undefined) void this.#refused(refusal)
      else if (++this.#unanswered >= maxUnanswered && this.up) {
        this.#settle(false, noRedisResponse)
        this.#tryAgain()
      }
      return undefined
    }
  }

  onChange(listener: (up: boolean) => void): Disposable {
    return listen(this.#listeners, listener)
  }

  /** Receives messages from these channels over a separate connection, which reconnects automatically. */
  subscribe(channels: readonly string[], hear: (channel: string, message: string) => void): AsyncDisposable {
    const { clock } = this.#options
    const subscriber = this.#open()
    this.#subscribers.add(subscriber)
    subscriber.on('message', hear)
    let isSubscribed = false
    let timer: Disposable | undefined
    /** Subscribes, or checks that the subscribed connection still responds, and replaces it otherwise. */
    const keepSubscribed = async () => {
      timer?.[Symbol.dispose]()
      timer = clock.after(subscriberProbeMs, () => void keepSubscribed())
      if (subscriber.status !== 'ready') return
      try {
        await this.#inTime(isSubscribed ? subscriber.ping() : subscriber.subscribe(...channels), redisConnectMs)
        isSubscribed = true
      } catch (thrown) {
        const refusal = errorReply(thrown)
        if (refusal !== undefined) this.#logRejected(refusal)
        else if (subscriber.status === 'ready') subscriber.disconnect(true)
      }
    }
    // Subscribe on each connection, because ioredis subscribes again only if its first attempt succeeded.
    subscriber.on('ready', () => {
      isSubscribed = false
      void keepSubscribed()
    })
    return {
      [Symbol.asyncDispose]: async () => {
        timer?.[Symbol.dispose]()
        this.#subscribers.delete(subscriber)
        subscriber.disconnect()
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    this.#probe?.[Symbol.dispose]()
    this.#client.disconnect()
  }

  #open(failed: (reason: string) => void = () => {}): Redis {
    const client = new this.#Client(this.#options.url, {
      // Fail immediately while Redis is down, instead of queueing commands until it is back.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: redisConnectMs,
      // Do not wait for a peer that may not respond.
      disconnectTimeout: 500,
      retryStrategy: (times) => backoffMs(times, { firstMs: 50, maxMs: maxReconnectPauseMs }),
      reconnectOnError: null,
    })
    client.on('error', (error) => failed(errorReply(error) ?? connectionErrorReason(error)))
    // ioredis waits without a limit for the responses to its first commands.
    let handshake: Disposable | undefined
    client.on('connect', () => {
      handshake = this.#options.clock.after(redisConnectMs, () => {
        failed(`not ready within ${redisConnectMs / 1000} s of connecting`)
        client.disconnect(true)
      })
    })
    for (const event of ['ready', 'close']) client.on(event, () => handshake?.[Symbol.dispose]())
    return client
  }

  /** Checks that Redis accepts writes and scripts. Otherwise, it counts as down, because nothing can be shared. */
  #check(): Promise<void> {
    this.#checking ??= this.#checkWrites().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #checkWrites(): Promise<void> {
    try {
      await this.#selectDatabase()
      await this.#inTime(writeProbe(this.#client, [`${this.prefix}probe`], []))
    } catch (thrown) {
      // If the connection was lost, `close` reports it.
      if (this.#ended || this.#client.status !== 'ready') return
      const refusal = errorReply(thrown)
      this.#replace =
        refusal === undefined ? ++this.#unansweredProbes >= maxUnansweredProbes : isElsewhere.test(refusal)
      this.#settle(false, refusal ?? noRedisResponse)
      this.#tryAgain()
      return
    }
    this.#responded()
    this.#replace = false
    this.#settle(true)
  }

  /** Selects the database in the URL again, because ioredis uses database 0 if that fails. */
  async #selectDatabase(): Promise<void> {
    const { db = 0 } = this.#client.options
    if (db === 0) return
    try {
      await this.#inTime(this.#client.select(db))
    } catch (thrown) {
      if (thrown instanceof Error && errorReply(thrown) !== undefined)
        thrown.message = `database ${new URL(this.#options.url).pathname.slice(1)} cannot be used: ${thrown.message}`
      throw thrown
    }
  }

  #responded(): void {
    this.#unanswered = 0
    this.#unansweredProbes = 0
  }

  /** Waits for a response. The timeouts of ioredis would reject one that arrived while this process was busy. */
  async #inTime<T>(response: Promise<T>, ms = redisTimeoutMs): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    using _timer = this.#options.clock.after(ms, () => reject(new Error('no response in time')))
    return await Promise.race([response, promise])
  }

  /** Probes a connection that cannot be used, or replaces it. */
  #tryAgain(): void {
    this.#probe ??= this.#options.clock.after(redisProbeMs, () => {
      this.#probe = undefined
      if (this.#ended || this.up || this.#client.status !== 'ready') return
      if (!this.#replace) return void this.#check()
      // Messages come from the same server.
      for (const each of [this.#client, ...this.#subscribers]) if (each.status === 'ready') each.disconnect(true)
    })
  }

  /** Handles an error reply: either Redis refuses all writes, or just this command. */
  async #refused(refusal: string): Promise<void> {
    await this.#check()
    if (this.up) this.#logRejected(refusal)
  }

  #logRejected(refusal: string): void {
    if (this.#logged.has(refusal)) return
    this.#logged.add(refusal)
    this.#options.log.error({ redis: this.where, why: refusal }, 'Redis rejected a command')
  }

  #settle(now: boolean, why = ''): void {
    if (this.#ended) return
    const { log } = this.#options
    const { where: redis } = this
    const changed = now !== this.up
    this.problem = now ? undefined : why
    this.up = now
    if (changed) this.#logged.clear()
    if (!now && !this.#logged.has(why)) {
      this.#logged.add(why)
      log.warn(
        { redis, why },
        'Redis is unavailable: each replica applies limits on its own, and results are not cached',
      )
    }
    if (!changed) return
    if (now) log.info({ redis }, 'Redis is available: limits, cached results and sessions are shared')
    for (const listener of this.#listeners) listener(now)
  }
}

const noRedisResponse = `no response within ${redisTimeoutMs / 1000} s (a fixed limit)`

/** Refusals after which a new connection may reach another server, or be accepted. Scripts may put words before them. */
const isElsewhere = /(?:^|-)(?:READONLY|LOADING|MASTERDOWN|NOAUTH) /

const writeProbe = createScript(`return redis.call('SET', KEYS[1], '1', 'PX', 60000)`)

/** The reason of a failed connection. Messages of Node contain the address, but never a password. */
function connectionErrorReason(thrown: Error): string {
  const error = thrown instanceof AggregateError ? (thrown.errors[0] as Error) : thrown
  return error.message || failureReason(error)
}

/** The text of an error reply; undefined for other errors. The reply to a transaction does not tell the reason. */
function errorReply(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || thrown.name !== 'ReplyError') return undefined
  const { previousErrors: [cause = thrown] = [] } = thrown as Error & { previousErrors?: readonly Error[] }
  // Redis repeats the arguments of unknown commands, and AUTH may be one.
  return cause.message.replace(/,? with args beginning with.*/s, '')
}

/** The error for an operation without a fallback while Redis is down. Callers can only retry. */
export function redisAway(what: string): ToolwayError {
  const sentence = `Redis does not answer (stores.redis), and ${what} is stored there; try again in a moment.`
  return new ToolwayError('OVERLOADED', sentence, { retryAfterMs: 1_000, unsent: true })
}

/** Resolves when Redis responds, or after two seconds. */
export async function isUp(redis: SharedRedis, clock: Clock): Promise<void> {
  if (redis.up) return
  const { promise, resolve } = Promise.withResolvers<void>()
  using _listener = redis.onChange(() => resolve())
  await settles(promise, redisStartMs, clock)
}

/** Returns a function that runs a script by its hash, and sends its text if Redis does not know that hash. */
export function createScript(text: string) {
  const sha = hash('sha1', text)
  return async (client: Redis, keys: readonly string[], values: readonly (string | Buffer | number)[]) => {
    try {
      return await client.evalsha(sha, keys.length, ...keys, ...values)
    } catch (thrown) {
      if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown
      return client.eval(text, keys.length, ...keys, ...values)
    }
  }
}
