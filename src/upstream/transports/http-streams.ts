import type { Clock } from '../../core/clock.ts'
import { pause } from '../../core/deadline.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import { maxMessage, readMessage } from '../../wire/message.ts'
import { EventReader, type ServerSentEvent } from '../../wire/sse.ts'
import { discardBody, type ReceiveBody, type ResponseBodyReader, type ResponseHead } from './http-channel.ts'
import { maxPerSecond, type ReadBudget, ReadLimit } from './read-limit.ts'
import { LimitExceeded } from './transport-errors.ts'

/** What the streams of a transport have in common. */
interface StreamSource {
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  readonly reading?: ReadBudget | undefined
  /** Called if the server sends more than is read, or an event that is too long. */
  exceeded?(limit: LimitExceeded): void
}

/** Opens a stream again, after the event with this id. */
type Reopen = (lastEventId: string | undefined, receive: ReceiveBody, signal?: AbortSignal) => Promise<ResponseHead>

interface EventListener {
  event(event: ServerSentEvent, limit: ReadLimit): void
  retry?(ms: number): void
  tooLong(cause: LimitExceeded): void
  /** Called once when the stream has ended; with an error if it broke. */
  ended(error?: Error): void
}

export const isStream = (head: ResponseHead): boolean => head.status === 200 && head.type === 'text/event-stream'

/** Whether a message on a request's own stream is the response to it. Most messages need not be parsed for this. */
export function isResponseMessage(data: Buffer): boolean {
  if (!data.includes('"method"')) return data.includes('"result"') || data.includes('"error"')
  const { kind } = readMessage(data)
  return kind === 'response' || kind === 'error'
}

/** Reads the events of a stream, within the limit for what was not requested. */
export function readEvents(head: ResponseHead, source: StreamSource, listener: EventListener): ResponseBodyReader {
  const flooded = () => source.exceeded?.(new LimitExceeded('flood', maxPerSecond))
  const limit = new ReadLimit(head, source.clock, flooded, source.reading)
  const reader = new EventReader({
    maxLength: maxMessage,
    event: (event) => listener.event(event, limit),
    retry: (ms) => listener.retry?.(ms),
    tooLong: () => listener.tooLong(new LimitExceeded('large-message', maxMessage)),
    other: (bytes) => limit.line(bytes),
  })
  const ended = (error?: Error) => {
    limit.end()
    listener.ended(error)
  }
  return { data: (chunk) => reader.push(chunk), end: () => ended(), lost: ended }
}

/** The maximum number of consecutive resume attempts without a new event. */
const maxFailedReconnects = 5
const firstReopenMs = 1_000
const minReopenMs = 100
const maxReopenMs = 30_000
/** How long a server may keep the stream open after its response. */
const streamLingerMs = 1_000

export interface ResponseStreamPort {
  /** A signal that aborts when the call is over. It is created only when needed. */
  signal(): AbortSignal
  deliver(data: Buffer): void
  /** Undefined if the protocol does not support that. */
  readonly reopen: Reopen | undefined
  /** Called once: without an argument when the response has arrived, or with the reason why it will not arrive. */
  done(failure?: string, cause?: unknown): void
}

/** The stream with the response to a request; resumed after a disconnect if its events have ids. */
export class ResponseStream {
  readonly #source: StreamSource
  readonly #port: ResponseStreamPort
  #isAnswered = false
  #isOver = false
  #lastId: string | undefined
  #pauseMs = firstReopenMs
  #fruitless = 0

  constructor(source: StreamSource, port: ResponseStreamPort) {
    this.#source = source
    this.#port = port
  }

  read(head: ResponseHead): ResponseBodyReader {
    const { clock } = this.#source
    let linger: Disposable | undefined
    return readEvents(head, this.#source, {
      event: ({ id, event, data }, limit) => {
        if (id !== undefined) this.#lastId = id
        this.#fruitless = 0
        if (this.#isOver || data.length === 0 || event !== 'message') return limit.message(data)
        if (isResponseMessage(data)) {
          this.#isAnswered = true
          linger = clock.after(streamLingerMs, () => head.abort())
        } else limit.message(data)
        this.#port.deliver(data)
        if (this.#isAnswered) this.#finish()
      },
      retry: (ms) => {
        this.#pauseMs = ms
      },
      tooLong: (cause) => {
        this.#finish(`sent an event longer than ${maxMessage / 1024 / 1024} MiB`, cause)
        head.abort()
      },
      ended: () => {
        linger?.[Symbol.dispose]()
        if (!this.#isOver) void this.#resume()
      },
    })
  }

  async #resume(): Promise<void> {
    const { clock } = this.#source
    const { reopen } = this.#port
    const signal = this.#port.signal()
    if (signal.aborted) return this.#finish()
    if (this.#lastId === undefined || !reopen) return this.#finish('ended the stream without a response')
    if (++this.#fruitless > maxFailedReconnects) return this.#finish('closed the stream and could not be reached again')
    const backoff = { firstMs: Math.max(this.#pauseMs, minReopenMs), maxMs: maxReopenMs }
    await pause(clock, backoffMs(this.#fruitless - 1, backoff), signal).catch(() => {})
    if (signal.aborted) return this.#finish()
    try {
      const head = await reopen(this.#lastId, (head) => (isStream(head) ? this.read(head) : discardBody(head, clock)))
      if (isStream(head)) return
      if (head.status < 500 && head.status !== 429)
        return this.#finish(`did not resume its response (HTTP ${head.status})`)
    } catch {
      // A failure to reopen the stream counts as an attempt.
    }
    return this.#resume()
  }

  #finish(failure?: string, cause?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#port.done(failure, cause)
  }
}

interface ServerStreamPort {
  readonly signal: AbortSignal
  readonly open: Reopen
  deliver(data: Buffer): void
  /** Called if the server had a stream before, but no longer knows the session. */
  forgotten(): void
  /** Called if the server had a stream before and now rejects it for another reason, which may be a lost session. */
  rejected(): void
}

/**
 * Keeps the server's own stream open. If the server has no such stream, it is asked only once. After a disconnect the
 * stream is reopened, with pauses that grow until an event arrives.
 */
export async function keepServerStream(source: StreamSource, port: ServerStreamPort): Promise<void> {
  const { name: server, clock, log } = source
  const { signal } = port
  let lastId: string | undefined
  let pauseMs = firstReopenMs
  let nextPauseMs = firstReopenMs
  let known = false

  while (!signal.aborted) {
    const ended = Promise.withResolvers<void>()
    const listener: EventListener = {
      event({ id, event, data }, limit) {
        if (id !== undefined) lastId = id
        nextPauseMs = pauseMs
        if (event === 'message' && data.length > 0) port.deliver(data)
        limit.message(data)
      },
      retry(ms) {
        pauseMs = Math.min(Math.max(ms, firstReopenMs), maxReopenMs)
        nextPauseMs = pauseMs
      },
      tooLong: (cause) => source.exceeded?.(cause),
      ended: () => ended.resolve(),
    }
    try {
      const head = await port.open(lastId, (head) =>
        isStream(head) ? readEvents(head, source, listener) : discardBody(head, clock),
      )
      if (isStream(head)) {
        known = true
        await ended.promise
      } else if (known && (head.status === 404 || head.status === 400)) return port.forgotten()
      else if (head.status < 500 && head.status !== 408 && head.status !== 429) {
        if (known) port.rejected()
        log.debug({ server, status: head.status }, 'the server has no GET stream')
        return
      }
    } catch (error) {
      if (!signal.aborted) log.debug({ server, err: error }, 'could not open the GET stream')
    }
    await pause(clock, nextPauseMs, signal).catch(() => {})
    nextPauseMs = Math.min(nextPauseMs * 2, maxReopenMs)
  }
}
