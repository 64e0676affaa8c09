import type { Clock } from '../../core/clock.ts'
import { jsonValue } from '../../json/parse-json.ts'
import type { InboundRequest } from '../inbound-message.ts'
import type { SessionEvents } from './event-store.ts'

/** How long a call continues after its client has lost the connection. */
export const absenceMs = 300_000

/** Maximum GET streams per session. Clients need only one; others may be broken connections that were never closed. */
const maxListening = 4

/** Limits for messages kept while the client has no stream. */
const maxMissed = 2_048
const maxMissedBytes = 1024 * 1024

/** One HTTP session's streams: p1, p2, … for POST responses and g1, g2, … for GETs. Sends each message on only one. */
export class SessionStreams implements Disposable {
  readonly #events: SessionEvents
  readonly #primes: boolean
  readonly #clock: Clock
  /** Streams with numbers up to this one belong to the replica that held the session before. */
  readonly #first: number
  /** POST response streams. */
  readonly #feeds = new Map<string, ResumableStream>()
  /** GET streams that are connected, newest last. */
  readonly #listening = new Map<string, ResumableStream>()
  /** Messages that are waiting for a GET stream. This is a set, so that a repeated notification is kept only once. */
  readonly #missed = new Set<Buffer>()
  /** Those of them that the stream of any call may carry. */
  readonly #onCalls = new WeakSet<Buffer>()
  #missedBytes = 0
  #count: number
  #over = false

  constructor(options: { events: SessionEvents; primes: boolean; clock: Clock; first?: number }) {
    this.#first = options.first ?? 0
    this.#count = this.#first
    this.#events = options.events
    this.#primes = options.primes
    this.#clock = options.clock
  }

  get listening(): boolean {
    return this.#listening.size > 0
  }

  /**
   * Opens the stream for one response. `abandoned` is called when the client has been disconnected for `absenceMs`. The
   * event ids contain the request's id, so that a replica that takes over the session can answer it.
   */
  open(connection: EventConnection, abandoned: () => void, request?: StreamedRequest): ResumableStream {
    const name = `p${++this.#count}`
    const lost = () => this.#clock.after(absenceMs, abandoned)
    const feed = this.#feed(name, { lost, tag: request && requestTag(request) })
    this.#feeds.set(name, feed)
    feed.connect(connection)
    if (!this.listening) this.#sendMissed(feed, true)
    return feed
  }

  listen(connection: EventConnection): void {
    this.#listen(`g${++this.#count}`, connection)
  }

  /**
   * Resumes a stream after an event. Returns `over` if the client has received everything, `unknown` if there is no such
   * event or the response after it is no longer stored, and the request if its response was lost with another replica.
   */
  resume(id: string, connect: () => EventConnection): 'resumed' | 'over' | 'unknown' | StreamedRequest {
    const from = readEventId(id)
    if (from === undefined) return 'unknown'
    const { stream, number, request } = from
    if (request && this.#first > 0 && !this.#feeds.has(stream) && !this.#events.isOver(stream)) return request
    if (Number(stream.slice(1)) <= this.#first && stream.startsWith('g')) {
      // The stream's past events were lost with the other replica, but new events can be sent on a new stream.
      this.listen(connect())
      return 'resumed'
    }
    if (number > this.#events.newest || Number(stream.slice(1)) > this.#count) return 'unknown'
    if (stream.startsWith('g')) {
      this.#listen(stream, connect(), number)
      return 'resumed'
    }
    const feed = this.#feeds.get(stream)
    if (feed !== undefined) {
      feed.connect(connect(), number)
      return 'resumed'
    }
    if (!this.#events.isOver(stream)) return 'unknown'
    if (this.#events.after(stream, number).every(({ message }) => message === undefined)) return 'over'
    const connection = connect()
    this.#feed(stream).connect(connection, number)
    connection.end()
    return 'resumed'
  }

  /**
   * Sends a message unrelated to any request, now or on the next GET stream. Without a GET stream, one that calls may be
   * waiting for (`onCalls`) goes on the stream of any call. Returns false if none of this is possible.
   */
  tell(message: Buffer, onCalls = false): boolean {
    if (this.#over) return false
    for (const feed of [...this.#listening.values()].reverse()) if (feed.offer(message)) return true
    if (onCalls) for (const feed of [...this.#feeds.values()].reverse()) if (feed.offer(message)) return true
    if (this.#missed.has(message)) return true
    if (this.#missed.size === maxMissed || this.#missedBytes + message.length > maxMissedBytes) return false
    if (!this.#events.reserve(message)) return false
    this.#missed.add(message)
    if (onCalls) this.#onCalls.add(message)
    this.#missedBytes += message.length
    return true
  }

  closeListening(): void {
    for (const feed of this.#listening.values()) feed.close()
  }

  [Symbol.dispose](): void {
    this.#over = true
    this.closeListening()
    for (const feed of this.#feeds.values()) feed.close()
    for (const message of this.#missed) this.#events.release(message)
    this.#missed.clear()
    this.#events[Symbol.dispose]()
  }

  #listen(name: string, connection: EventConnection, after?: number): void {
    const gone = () => void (this.#listening.get(name) === feed && this.#listening.delete(name))
    const feed = this.#listening.get(name) ?? this.#feed(name, { lost: gone, over: gone })
    // Move the stream to the end, because the newest stream gets the messages.
    this.#listening.delete(name)
    const [oldest] = this.#listening.values()
    if (oldest !== undefined && this.#listening.size === maxListening) oldest.close()
    this.#listening.set(name, feed)
    feed.connect(connection, after)
    this.#sendMissed(feed)
  }

  #sendMissed(feed: ResumableStream, onCall = false): void {
    for (const message of this.#missed) {
      if (onCall && !this.#onCalls.has(message)) continue
      if (!feed.offer(message)) break
      this.#missed.delete(message)
      this.#missedBytes -= message.length
      this.#events.release(message)
    }
  }

  #feed(name: string, options: Pick<ResumableStreamOptions, 'lost' | 'over' | 'tag'> = {}): ResumableStream {
    const over = () => void this.#feeds.delete(name)
    return new ResumableStream({ name, events: this.#events, primes: this.#primes, over, ...options })
  }
}

export interface EventConnection {
  /** Sends an event id without a message, so that the client can resume from there. */
  prime(id: string): void
  /** Sends a message. Returns false if the client has disconnected or is too far behind. */
  send(message: Buffer, id?: string): boolean
  /** Sends a stored message again. The limit for unread bytes does not apply. */
  resend(message: Buffer, id: string): void
  end(): void
  onClose(listener: () => void): void
}

interface ResumableStreamOptions {
  readonly name: string
  /** The end of each event id. */
  readonly tag?: string | undefined
  readonly events: SessionEvents
  /** Whether the client accepts an event without a message. */
  readonly primes: boolean
  /** Called when the connection is lost. The returned object is disposed of when the client reconnects. */
  lost?(): Disposable | undefined
  over?(): void
}

/** A stream of numbered events that outlives its connections. */
export class ResumableStream {
  readonly #options: ResumableStreamOptions
  #connection: EventConnection | undefined
  #absence: Disposable | undefined
  #resumable = false
  #over = false

  constructor(options: ResumableStreamOptions) {
    this.#options = options
  }

  get resumable(): boolean {
    return this.#resumable
  }

  /** Continues the stream on this connection. If `after` is given, resends the events since then. */
  connect(connection: EventConnection, after?: number): void {
    const { name, events, primes } = this.#options
    const former = this.#connection
    this.#connection = connection
    this.#absence?.[Symbol.dispose]()
    this.#absence = undefined
    former?.end()
    connection.onClose(() => this.#lose(connection))
    if (primes) {
      connection.prime(this.#idOf(after ?? events.newest))
      this.#resumable = true
    }
    if (after === undefined) return
    for (const { number, message } of events.after(name, after)) {
      if (message !== undefined) connection.resend(message, this.#idOf(number))
    }
  }

  /** Sends a message now, or when the client reconnects. Returns false if the stream is over. */
  send(message: Buffer): boolean {
    if (this.#over) return false
    const { name, events } = this.#options
    const number = events.add(name, message)
    if (this.#connection?.send(message, this.#idOf(number))) this.#resumable = true
    return true
  }

  /** Sends a message only if the connection accepts it now. Otherwise returns false. */
  offer(message: Buffer): boolean {
    const { name, events } = this.#options
    if (this.#over || !this.#connection?.send(message, this.#idOf(events.newest + 1))) return false
    events.add(name, message)
    this.#resumable = true
    return true
  }

  /** Ends the stream, optionally with a response. The end is stored for clients that reconnect. */
  end(answer?: Buffer): void {
    if (this.#over) return
    const { name, events } = this.#options
    if (answer !== undefined) {
      const number = events.add(name, answer, true)
      this.#connection?.send(answer, this.#idOf(number))
    } else if (this.#resumable) events.add(name, undefined, true)
    this.close()
  }

  /** Closes the stream without storing its end, so that a client may open it again. */
  close(): void {
    if (this.#over) return
    this.#over = true
    this.#absence?.[Symbol.dispose]()
    this.#connection?.end()
    this.#options.over?.()
  }

  #idOf(number: number): string {
    const { name, tag = '' } = this.#options
    return `${name}-${number}${tag}`
  }

  #lose(connection: EventConnection): void {
    if (connection !== this.#connection || this.#over) return
    this.#connection = undefined
    this.#absence = this.#options.lost?.()
  }
}

export type StreamedRequest = Pick<InboundRequest, 'id' | 'method'>

/** Maximum length of a tag. A client that uses longer ids for its requests gets no answer to those that are lost. */
const maxTag = 200

function requestTag({ id, method }: StreamedRequest): string {
  const tag = `.${Buffer.from(JSON.stringify([id, method])).toString('base64url')}`
  return tag.length > maxTag ? '' : tag
}

function readEventId(text: string) {
  const [, stream, number, tag] = /^([gp][1-9]\d{0,14})-(0|[1-9]\d{0,14})(?:\.([\w-]{1,200}))?$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, number: Number(number), request: requestInTag(tag) }
}

/** Reads a tag, which a client may have made up. */
function requestInTag(tag: string | undefined): StreamedRequest | undefined {
  if (tag === undefined) return undefined
  try {
    const [id, method] = jsonValue(Buffer.from(tag, 'base64url').toString()) as unknown[]
    const isId = typeof id === 'string' || Number.isSafeInteger(id)
    return isId && typeof method === 'string' ? { id: id as InboundRequest['id'], method } : undefined
  } catch {
    return undefined
  }
}
