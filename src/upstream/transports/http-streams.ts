import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import { maxMessage, readMessage } from '../../wire/message.ts'
import { EventReader } from '../../wire/sse.ts'
import { discardBody, type ReceiveBody, type ResponseBodyReader, type ResponseHead } from './http-channel.ts'
import { createReadLimit, maxPerSecond, type ReadBudget } from './read-limit.ts'
import { LimitExceeded } from './transport-errors.ts'

export interface ResponseStreamOptions {
  readonly clock: Clock
  /** A signal that aborts when the call is over. It is created only when needed. */
  signal(): AbortSignal
  deliver(data: Buffer): void
  /** Resumes the stream after the event with this id; undefined if the protocol does not support that. */
  reopen: ((lastEventId: string, receive: ReceiveBody) => Promise<ResponseHead>) | undefined
  /** Called if the server sends more than is read. */
  flooded(): void
  readonly reading: ReadBudget
  /** Called once: without an argument when the response has arrived, or with the reason why it will not arrive. */
  done(failure?: string, cause?: unknown): void
}

/** The maximum number of consecutive resume attempts without a new event. */
const maxFailedReconnects = 5
const firstPauseMs = 1_000
const minPauseMs = 100
const maxPauseMs = 30_000
/** How long a server may keep the stream open after its response. */
const lingerMs = 1_000

/** Reads the stream with the response to a request; resumes it after a disconnect if its events have ids. */
export function readResponseStream(first: ResponseHead, exchange: ResponseStreamOptions): ResponseBodyReader {
  const { clock } = exchange
  let answered = false
  let over = false
  let lastId: string | undefined
  let pauseMs = firstPauseMs
  let fruitless = 0
  return read(first)

  function read(head: ResponseHead): ResponseBodyReader {
    let linger: Disposable | undefined
    const limit = createReadLimit(head, clock, exchange.flooded, exchange.reading)
    const reader = new EventReader({
      maxLength: maxMessage,
      event({ id, event, data }) {
        if (id !== undefined) lastId = id
        fruitless = 0
        if (over || data.length === 0 || event !== 'message') return limit.message(data)
        if (isResponse(data)) {
          answered = true
          linger = clock.after(lingerMs, head.abort)
        } else limit.message(data)
        exchange.deliver(data)
        if (answered) finish()
      },
      retry: (ms) => {
        pauseMs = ms
      },
      tooLong() {
        const cause = new LimitExceeded('large-message', maxMessage)
        finish(`sent an event longer than ${maxMessage / 1024 / 1024} MiB`, cause)
        head.abort()
      },
      other: limit.line,
    })
    const ended = (): void => {
      linger?.[Symbol.dispose]()
      limit.end()
      if (!over) void resume()
    }
    return { data: reader.push, end: ended, lost: ended }
  }

  async function resume(): Promise<void> {
    const signal = exchange.signal()
    if (signal.aborted) return finish()
    const { reopen } = exchange
    if (lastId === undefined || !reopen) return finish('ended the stream without a response')
    if (++fruitless > maxFailedReconnects) return finish('closed the stream and could not be reached again')
    const backoff = { firstMs: Math.max(pauseMs, minPauseMs), maxMs: maxPauseMs }
    await pause(clock, backoffMs(fruitless - 1, backoff), signal).catch(() => {})
    if (signal.aborted) return finish()
    try {
      const head = await reopen(lastId, (head) => (isStream(head) ? read(head) : discardBody(head, clock)))
      if (isStream(head)) return
      if (head.status < 500 && head.status !== 429) return finish(`did not resume its response (HTTP ${head.status})`)
    } catch {
      // A failure to reopen the stream counts as an attempt.
    }
    return resume()
  }

  function finish(failure?: string, cause?: unknown): void {
    if (over) return
    over = true
    exchange.done(failure, cause)
  }
}

export const isStream = (head: ResponseHead): boolean => head.status === 200 && head.type === 'text/event-stream'

/** Whether a message on a request's own stream is the response to it. Most messages need not be parsed for this. */
export function isResponse(data: Buffer): boolean {
  if (!data.includes('"method"')) return data.includes('"result"') || data.includes('"error"')
  const { kind } = readMessage(data)
  return kind === 'response' || kind === 'error'
}

/**
 * Keeps the server's own stream open. If the server has no such stream, it is asked only once. After a disconnect the
 * stream is reopened, with pauses that grow until an event arrives.
 */
export async function keepServerStream(options: {
  readonly server: string
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  open(lastEventId: string | undefined, receive: ReceiveBody): Promise<ResponseHead>
  deliver(data: Buffer): void
  /** Called if the server sends more than is read, or an event that is too long. */
  exceeded(limit: LimitExceeded): void
  readonly reading: ReadBudget
  /** Called if the server had a stream before, but no longer knows the session. */
  forgotten(): void
  /** Called if the server had a stream before and now rejects it for another reason, which may be a lost session. */
  rejected(): void
}): Promise<void> {
  const { server, clock, log, signal } = options
  let lastId: string | undefined
  let pauseMs = firstPauseMs
  let nextPauseMs = firstPauseMs
  let known = false

  while (!signal.aborted) {
    const ended = Promise.withResolvers<void>()
    const read = (head: ResponseHead): ResponseBodyReader => {
      const flooded = () => options.exceeded(new LimitExceeded('flood', maxPerSecond))
      const limit = createReadLimit(head, clock, flooded, options.reading)
      const reader = new EventReader({
        maxLength: maxMessage,
        event({ id, event, data }) {
          if (id !== undefined) lastId = id
          nextPauseMs = pauseMs
          if (event === 'message' && data.length > 0) options.deliver(data)
          limit.message(data)
        },
        retry(ms) {
          pauseMs = Math.min(Math.max(ms, firstPauseMs), maxPauseMs)
          nextPauseMs = pauseMs
        },
        tooLong: () => options.exceeded(new LimitExceeded('large-message', maxMessage)),
        other: limit.line,
      })
      const over = (): void => {
        limit.end()
        ended.resolve()
      }
      return { data: reader.push, end: over, lost: over }
    }
    try {
      const head = await options.open(lastId, (head) => (isStream(head) ? read(head) : discardBody(head, clock)))
      if (isStream(head)) {
        known = true
        await ended.promise
      } else if (known && (head.status === 404 || head.status === 400)) return options.forgotten()
      else if (head.status < 500 && head.status !== 408 && head.status !== 429) {
        if (known) options.rejected()
        log.debug({ server, status: head.status }, 'the server has no GET stream')
        return
      }
    } catch (error) {
      if (!signal.aborted) log.debug({ server, err: error }, 'could not open the GET stream')
    }
    await pause(clock, nextPauseMs, signal).catch(() => {})
    nextPauseMs = Math.min(nextPauseMs * 2, maxPauseMs)
  }
}
