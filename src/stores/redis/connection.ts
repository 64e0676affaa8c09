import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/backoff.ts'

/** Redis or Valkey, as far as it is there. Whoever asks has a way of its own to go on without it. */
export interface SharedRedis extends AsyncDisposable {
  /** Whether it answers. */
  readonly up: boolean
  /** Put in front of every key, so that several fleets can share one Redis. */
  readonly prefix: string
  /** What a command comes to; undefined where Redis is not there or too slow. Never rejects. */
  ask<T>(command: (redis: Redis) => Promise<T>): Promise<T | undefined>
  /** Hears when Redis comes and goes. */
  onChange(listener: (up: boolean) => void): Disposable
  /** A connection of its own that hears what is published in these channels; it comes back by itself. */
  subscribe(channels: readonly string[], hear: (channel: string, message: string) => void): AsyncDisposable
}

export interface RedisOptions {
  readonly url: string
  readonly prefix?: string
  readonly clock: Clock
  readonly log: Log
}

/** A command that takes longer does not help a call any more. */
const patienceMs = 500
/** So many commands in a row without an answer, and it counts as gone although the connection stands. */
const maxUnanswered = 3
const probeMs = 1_000
const maxPauseMs = 2_000

/** Connects in the background, again and again: neither start nor any call waits for Redis. */
export async function connectRedis({ url, prefix = 'toolway:', clock, log }: RedisOptions): Promise<SharedRedis> {
  // Loaded where it is configured: most gateways run alone.
  const { Redis: Client } = await import('ioredis')
  const listeners = new Set<(up: boolean) => void>()
  const where = new URL(url).host
  let up = false
  let unanswered = 0
  let probe: Disposable | undefined
  let ended = false

  const settle = (now: boolean, why = '') => {
    if (now === up || ended) return
    up = now
    if (up) log.info({ redis: where }, 'Redis answers: limits, results and sessions are shared')
    else log.warn({ redis: where, why }, 'Redis does not answer: limits count here alone, no result is kept')
    for (const listener of listeners) listener(up)
  }

  const open = (): Redis => {
    const client = new Client(url, {
      // A call must not wait in a queue for Redis to come back.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: 2_000,
      commandTimeout: patienceMs,
      retryStrategy: (times) => backoffMs(times, { firstMs: 50, maxMs: maxPauseMs }),
      reconnectOnError: null,
    })
    // Told by `close`; without a listener it would end the process.
    client.on('error', () => {})
    return client
  }
  const client = open()
  client.on('ready', () => {
    unanswered = 0
    settle(true)
  })
  client.on('close', () => settle(false, 'the connection is lost'))

  /** A connection that stands but does not answer is tried until it does. */
  const tryAgain = () => {
    probe ??= clock.after(probeMs, () => {
      probe = undefined
      if (ended || up || client.status !== 'ready') return
      client.ping().then(
        () => {
          unanswered = 0
          settle(true)
        },
        () => tryAgain(),
      )
    })
  }

  return {
    prefix,
    get up() {
      return up
    },
    async ask(command) {
      if (!up) return undefined
      try {
        const answer = await command(client)
        unanswered = 0
        return answer
      } catch (thrown) {
        // An answer that says no is an answer, and a fault of ours.
        if (isReply(thrown)) log.error({ err: thrown }, 'Redis refused a command')
        else if (++unanswered >= maxUnanswered && up) {
          settle(false, `it does not answer within ${patienceMs / 1000} s (a fixed limit)`)
          tryAgain()
        }
        return undefined
      }
    },
    onChange(listener) {
      const own = (now: boolean) => listener(now)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
    subscribe(channels, hear) {
      const ear = open()
      ear.on('message', hear)
      // Not what the library does by itself: it gives up where the first try fails.
      ear.on('ready', () => ear.subscribe(...channels).catch(() => {}))
      return {
        async [Symbol.asyncDispose]() {
          ear.disconnect()
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

const isReply = (thrown: unknown): boolean => thrown instanceof Error && thrown.name === 'ReplyError'

/** For what there is no way to do without Redis. It says nothing about whoever asked, so trying again is all there is. */
export const redisAway = (what: string): ToolwayError =>
  new ToolwayError(
    'OVERLOADED',
    `Redis does not answer, and only there is known ${what} (stores.redis); try again in a moment.`,
    { retryAfterMs: 1_000, unsent: true },
  )

/** Lets time pass. */
export function pause(clock: Clock, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  clock.after(ms, resolve)
  return promise
}

/** Runs a script by its hash; a Redis that does not know it (any more) is told. */
type Script = (
  client: Redis,
  keys: readonly string[],
  values: readonly (string | Buffer | number)[],
) => Promise<unknown>

export function createScript(text: string): Script {
  const sha = hash('sha1', text)
  return async (client, keys, values) => {
    try {
      return await client.evalsha(sha, keys.length, ...keys, ...values)
    } catch (thrown) {
      if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown
      return client.eval(text, keys.length, ...keys, ...values)
    }
  }
}
