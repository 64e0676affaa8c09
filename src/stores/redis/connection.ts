import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import { listen } from '../../lib/listen.ts'
import { failureReason } from '../../lib/message-text.ts'

/** A connection to Redis or Valkey, which may be unavailable, so callers need a fallback. */
export interface SharedRedis extends AsyncDisposable {
  readonly up: boolean
  /** Why Redis is down, without a password; undefined while it is up or the first connection is being opened. */
  readonly problem: string | undefined
  /** The address without credentials, for display. */
  readonly where: string
  /** Key prefix, so that several clusters can share one Redis. */
  readonly prefix: string
  /** Runs a command; undefined if Redis is unavailable or too slow. Never rejects. */
  ask<T>(command: (redis: Redis) => Promise<T>): Promise<T | undefined>
  onChange(listener: (up: boolean) => void): Disposable
  /** Receives messages from these channels over a separate connection, which reconnects automatically. */
  subscribe(channels: readonly string[], hear: (channel: string, message: string) => void): AsyncDisposable
}

export interface RedisOptions {
  readonly url: string
  readonly prefix?: string
  readonly clock: Clock
  readonly log: Log
}

/** The timeout for a request. A slower response is of no use to a call. */
const requestTimeoutMs = 500
/** After this many timeouts in a row, Redis counts as down even if the connection is open. */
const maxUnanswered = 3
const probeMs = 1_000
/** How often connections that only receive messages are checked. */
const subscriberProbeMs = 10_000
/** After this many probes without a response, the connection is replaced: its packets may be dropped silently. */
const maxUnansweredProbes = 2
/** The timeout for the TCP connection, and again for the first commands on it. */
const connectMs = 2_000
const startMs = 2_000
const maxPauseMs = 2_000

/** Connects and reconnects in the background: neither this function nor calls wait for a connection. */
export async function connectRedis({ url, prefix = 'toolway:', clock, log }: RedisOptions): Promise<SharedRedis> {
  // Loaded only if Redis is configured; most gateways run without it.
  const { Redis: Client } = await import('ioredis')
  const listeners = new Set<(up: boolean) => void>()
  const where = new URL(url).host
  let up = false
  let unanswered = 0
  let unansweredProbes = 0
  let probe: Disposable | undefined
  let ended = false

  /** Why Redis is down, and what was logged about it since it was last up. */
  let why: string | undefined
  const logged = new Set<string>()

  const settle = (now: boolean, reason = '') => {
    if (ended) return
    why = now ? undefined : reason
    const changed = now !== up
    up = now
    if (changed) logged.clear()
    if (!up && !logged.has(reason)) {
      logged.add(reason)
      log.warn(
        { redis: where, why: reason },
        'Redis is unavailable: each replica applies limits on its own, and results are not cached',
      )
    }
    if (!changed) return
    if (up) log.info({ redis: where }, 'Redis is available: limits, cached results and sessions are shared')
    for (const listener of listeners) listener(up)
  }

  const open = (failed: (reason: string) => void = () => {}): Redis => {
    const client = new Client(url, {
      // Fail immediately while Redis is down, instead of queueing commands until it is back.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: connectMs,
      // Do not wait for a peer that may not respond.
      disconnectTimeout: 500,
      retryStrategy: (times) => backoffMs(times, { firstMs: 50, maxMs: maxPauseMs }),
      reconnectOnError: null,
    })
    client.on('error', (error) => failed(refusalIn(error) ?? connectionError(error)))
    // ioredis waits without a limit for the responses to its first commands.
    let handshake: Disposable | undefined
    client.on('connect', () => {
      handshake = clock.after(connectMs, () => {
        failed(`not ready within ${connectMs / 1000} s of connecting`)
        client.disconnect(true)
      })
    })
    for (const event of ['ready', 'close']) client.on(event, () => handshake?.[Symbol.dispose]())
    return client
  }
  /** Why the current connection cannot be opened, or was closed. */
  let failure: string | undefined
  const client = open((reason) => {
    failure = reason
  })
  const subscribers = new Set<Redis>()
  client.on('ready', () => {
    unanswered = 0
    unansweredProbes = 0
    failure = undefined
    void check()
  })
  client.on('close', () => settle(false, failure ?? why ?? 'connection closed'))

  /** Waits for a response. The timeouts of ioredis would reject one that arrived while this process was busy. */
  const inTime = async <T>(response: Promise<T>, ms = requestTimeoutMs): Promise<T> => {
    const { promise, reject } = Promise.withResolvers<never>()
    using _timer = clock.after(ms, () => reject(new Error('no response in time')))
    return await Promise.race([response, promise])
  }

  /** Selects the database in the URL again, because ioredis uses database 0 if that fails. */
  const selectDatabase = async () => {
    const { db = 0 } = client.options
    if (db === 0) return
    try {
      await inTime(client.select(db))
    } catch (thrown) {
      if (thrown instanceof Error && refusalIn(thrown) !== undefined)
        thrown.message = `database ${new URL(url).pathname.slice(1)} cannot be used: ${thrown.message}`
      throw thrown
    }
  }

  /** Whether a new connection may help: packets are dropped silently, or another server has become the master. */
  let replace = false
  let checking: Promise<void> | undefined
  /** Checks that Redis accepts writes and scripts. Otherwise, it counts as down, because nothing can be shared. */
  const check = () => {
    checking ??= selectDatabase()
      .then(() => inTime(writeProbe(client, [`${prefix}probe`], [])))
      .then(
        () => {
          unanswered = 0
          unansweredProbes = 0
          replace = false
          settle(true)
        },
        (thrown: unknown) => {
          // If the connection was lost, `close` reports it.
          if (ended || client.status !== 'ready') return
          const refusal = refusalIn(thrown)
          replace = refusal === undefined ? ++unansweredProbes >= maxUnansweredProbes : isElsewhere.test(refusal)
          settle(false, refusal ?? noResponse)
          tryAgain()
        },
      )
      .finally(() => {
        checking = undefined
      })
    return checking
  }

  /** Probes a connection that cannot be used, or replaces it. */
  const tryAgain = () => {
    probe ??= clock.after(probeMs, () => {
      probe = undefined
      if (ended || up || client.status !== 'ready') return
      if (!replace) return void check()
      // Messages come from the same server.
      for (const each of [client, ...subscribers]) if (each.status === 'ready') each.disconnect(true)
    })
  }

  /** Handles an error reply: either Redis refuses all writes, or just this command. */
  const refused = async (refusal: string) => {
    await check()
    if (up) logRejected(refusal)
  }

  const logRejected = (refusal: string) => {
    if (logged.has(refusal)) return
    logged.add(refusal)
    log.error({ redis: where, why: refusal }, 'Redis rejected a command')
  }

  return {
    prefix,
    where,
    get up() {
      return up
    },
    get problem() {
      return why
    },
    async ask(command) {
      if (!up) return undefined
      try {
        const answer = await inTime(command(client))
        unanswered = 0
        return answer
      } catch (thrown) {
        const refusal = refusalIn(thrown)
        if (refusal !== undefined) void refused(refusal)
        else if (++unanswered >= maxUnanswered && up) {
          settle(false, noResponse)
          tryAgain()
        }
        return undefined
      }
    },
    onChange: (listener) => listen(listeners, listener),
    subscribe(channels, hear) {
      const subscriber = open()
      subscribers.add(subscriber)
      subscriber.on('message', hear)
      let isSubscribed = false
      let timer: Disposable | undefined
      /** Subscribes, or checks that the subscribed connection still responds, and replaces it otherwise. */
      const keepSubscribed = async () => {
        timer?.[Symbol.dispose]()
        timer = clock.after(subscriberProbeMs, () => void keepSubscribed())
        if (subscriber.status !== 'ready') return
        try {
          await inTime(isSubscribed ? subscriber.ping() : subscriber.subscribe(...channels), connectMs)
          isSubscribed = true
        } catch (thrown) {
          const refusal = refusalIn(thrown)
          if (refusal !== undefined) logRejected(refusal)
          else if (subscriber.status === 'ready') subscriber.disconnect(true)
        }
      }
      // Subscribe on each connection, because ioredis subscribes again only if its first attempt succeeded.
      subscriber.on('ready', () => {
        isSubscribed = false
        void keepSubscribed()
      })
      return {
        async [Symbol.asyncDispose]() {
          timer?.[Symbol.dispose]()
          subscribers.delete(subscriber)
          subscriber.disconnect()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      ended = true
      probe?.[Symbol.dispose]()
      client.disconnect()
    },
  }
}

const noResponse = `no response within ${requestTimeoutMs / 1000} s (a fixed limit)`

/** Refusals after which a new connection may reach another server, or be accepted. Scripts may put words before them. */
const isElsewhere = /(?:^|-)(?:READONLY|LOADING|MASTERDOWN|NOAUTH) /

/** Writes a key in a script. KEYS: the key. */
const writeProbe = createScript(`return redis.call('SET', KEYS[1], '1', 'PX', 60000)`)

/** The reason of a failed connection. Messages of Node contain the address, but never a password. */
function connectionError(thrown: Error): string {
  const error = thrown instanceof AggregateError ? (thrown.errors[0] as Error) : thrown
  return error.message || failureReason(error)
}

/** The text of an error reply; undefined for other errors. The reply to a transaction does not tell the reason. */
function refusalIn(thrown: unknown): string | undefined {
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
  await settles(promise, startMs, clock)
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
