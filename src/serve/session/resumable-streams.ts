import type { Clock } from '../../core/clock.ts'
import type { SessionEvents } from './event-store.ts'

/** How long a call goes on for a client that has lost its stream and does not come back for the answer. */
export const absenceMs = 300_000

/** A client needs one; a few more are those it has lost without our knowing. */
const maxListening = 4

/** What waits for a client without a stream. */
const maxMissed = 2_048
const maxMissedBytes = 1024 * 1024

interface StreamsOptions {
  readonly events: SessionEvents
  readonly primes: boolean
  readonly clock: Clock
  /** Its streams have numbers beyond this: below are those that the session had elsewhere. */
  readonly first?: number
}

/**
 * The event streams of one session over HTTP: one for each answer that has become a stream (p1, p2, …) and those that
 * the client opens for what belongs to no request (g1, g2, …). Each message goes to one of them, once.
 */
export class SessionStreams implements Disposable {
  readonly #events: SessionEvents
  readonly #primes: boolean
  readonly #clock: Clock
  /** Streams with lower numbers were those of another replica, which is gone. */
  readonly #first: number
  /** Feeds that something may still be sent on. */
  readonly #feeds = new Map<string, ResumableStream>()
  /** Those that are for what belongs to no request and have a connection, the newest last. */
  readonly #listening = new Map<string, ResumableStream>()
  /** What could not be told because no stream was open; each is kept once. */
  readonly #missed = new Set<Buffer>()
  #missedBytes = 0
  #count: number
  #over = false

  constructor(options: StreamsOptions) {
    this.#first = options.first ?? 0
    this.#count = this.#first
    this.#events = options.events
    this.#primes = options.primes
    this.#clock = options.clock
  }

  /** Whether the client has a stream open for what belongs to no request. */
  get listening(): boolean {
    return this.#listening.size > 0
  }

  /** Begins the stream of one answer; `abandoned` is told when its client has been away for too long. */
  open(connection: EventConnection, abandoned: () => void): ResumableStream {
    const name = `p${++this.#count}`
    const feed = this.#feed(name, () => this.#clock.after(absenceMs, abandoned))
    this.#feeds.set(name, feed)
    feed.connect(connection)
    return feed
  }

  /** Begins a stream for what belongs to no request. */
  listen(connection: EventConnection): void {
    this.#listen(`g${++this.#count}`, connection)
  }

  /**
   * Goes on behind an event, on the connection that is then asked for. `over` means that the client has had everything;
   * `unknown`, that there was no such event or that the answer behind it is no longer kept.
   */
  resume(id: string, connect: () => EventConnection): 'resumed' | 'over' | 'unknown' {
    const from = readEventId(id)
    if (from === undefined) return 'unknown'
    const { stream, number } = from
    if (Number(stream.slice(1)) <= this.#first && stream.startsWith('g')) {
      // What was told there is gone with it, and what is told from now on is as good on another stream.
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

  /** Sends what belongs to no request, now or when there is a stream for it; false if the client cannot be reached. */
  tell(message: Buffer): boolean {
    if (this.#over) return false
    for (const feed of [...this.#listening.values()].reverse()) if (feed.offer(message)) return true
    if (this.#missed.has(message)) return true
    if (this.#missed.size === maxMissed || this.#missedBytes + message.length > maxMissedBytes) return false
    this.#missed.add(message)
    this.#missedBytes += message.length
    return true
  }

  /** Ends the streams for what belongs to no request. */
  closeListening(): void {
    for (const feed of this.#listening.values()) feed.close()
  }

  [Symbol.dispose](): void {
    this.#over = true
    this.closeListening()
    for (const feed of this.#feeds.values()) feed.close()
    this.#missed.clear()
    this.#events[Symbol.dispose]()
  }

  #listen(name: string, connection: EventConnection, after?: number): void {
    const gone = () => void (this.#listening.get(name) === feed && this.#listening.delete(name))
    const feed = this.#listening.get(name) ?? this.#feed(name, gone, gone)
    // Put behind the others again, where it is the one to be told.
    this.#listening.delete(name)
    const [oldest] = this.#listening.values()
    if (oldest !== undefined && this.#listening.size === maxListening) oldest.close()
    this.#listening.set(name, feed)
    feed.connect(connection, after)
    for (const message of this.#missed) {
      if (!feed.offer(message)) break
      this.#missed.delete(message)
      this.#missedBytes -= message.length
    }
  }

  #feed(
    name: string,
    lost: () => Disposable | undefined = () => undefined,
    over: () => void = () => void this.#feeds.delete(name),
  ): ResumableStream {
    return new ResumableStream({ name, events: this.#events, primes: this.#primes, lost, over })
  }
}

/** What carries events to a client for as long as it lasts. */
export interface EventConnection {
  /** Gives the client an event to come back to, without a message. */
  prime(id: string): void
  /** Sends one message; false if the reader is gone. */
  send(message: Buffer, id?: string): boolean
  /** Sends what was sent before, however much that is. */
  resend(message: Buffer, id: string): void
  end(): void
  onClose(listener: () => void): void
}

interface ResumableStreamOptions {
  /** Unique within its session. */
  readonly name: string
  readonly events: SessionEvents
  /** The client knows what an event without a message means. */
  readonly primes: boolean
  /** The connection is gone; what this gives is disposed of when another has come. */
  lost(): Disposable | undefined
  /** Nothing more will be sent. */
  over(): void
}

/** A stream of numbered events that outlives the connections which carry it. */
export class ResumableStream {
  readonly #options: ResumableStreamOptions
  #connection: EventConnection | undefined
  #absence: Disposable | undefined
  #resumable = false
  #over = false

  constructor(options: ResumableStreamOptions) {
    this.#options = options
  }

  /** Whether the client has an event to come back to. */
  get resumable(): boolean {
    return this.#resumable
  }

  /** Goes on, on this connection; behind the given number if there is one, with what was sent since first. */
  connect(connection: EventConnection, after?: number): void {
    const { name, events, primes } = this.#options
    const former = this.#connection
    this.#connection = connection
    this.#absence?.[Symbol.dispose]()
    this.#absence = undefined
    former?.end()
    connection.onClose(() => this.#lose(connection))
    if (primes) {
      connection.prime(idOf(name, after ?? events.newest))
      this.#resumable = true
    }
    if (after === undefined) return
    for (const { number, message } of events.after(name, after)) {
      if (message !== undefined) connection.resend(message, idOf(name, number))
    }
  }

  /** Sends a message, now or when the client comes back. */
  send(message: Buffer): boolean {
    if (this.#over) return false
    const { name, events } = this.#options
    const number = events.add(name, message)
    if (this.#connection?.send(message, idOf(name, number))) this.#resumable = true
    return true
  }

  /** Sends a message only if there is a connection that takes it now. */
  offer(message: Buffer): boolean {
    const { name, events } = this.#options
    if (this.#over || !this.#connection?.send(message, idOf(name, events.newest + 1))) return false
    events.add(name, message)
    this.#resumable = true
    return true
  }

  /** Ends, with an answer or without: a client that comes back finds that nothing more is to come. */
  end(answer?: Buffer): void {
    if (this.#over) return
    const { name, events } = this.#options
    if (answer !== undefined) {
      const number = events.add(name, answer, true)
      this.#connection?.send(answer, idOf(name, number))
    } else if (this.#resumable) events.add(name, undefined, true)
    this.close()
  }

  /** Ends for us: a client may come back and begin it anew. */
  close(): void {
    if (this.#over) return
    this.#over = true
    this.#absence?.[Symbol.dispose]()
    this.#connection?.end()
    this.#options.over()
  }

  #lose(connection: EventConnection): void {
    if (connection !== this.#connection || this.#over) return
    this.#connection = undefined
    this.#absence = this.#options.lost()
  }
}

const idOf = (stream: string, number: number): string => `${stream}-${number}`

/** Takes an event's id apart again; `undefined` if it cannot be one of ours. */
function readEventId(id: string): { readonly stream: string; readonly number: number } | undefined {
  const [, stream, number] = /^([gp][1-9]\d{0,14})-(0|[1-9]\d{0,14})$/.exec(id) ?? []
  return stream === undefined ? undefined : { stream, number: Number(number) }
}
