import type { Events } from './events.ts'

/** What carries events to a client for as long as it lasts. */
export interface Connection {
  /** Gives the client an event to come back to, without a message. */
  prime(id: string): void
  /** Sends one message; false if the reader is gone. */
  send(message: Buffer, id?: string): boolean
  /** Sends what was sent before, however much that is. */
  resend(message: Buffer, id: string): void
  end(): void
  onClose(listener: () => void): void
}

interface FeedOptions {
  /** Unique within its session. */
  readonly name: string
  readonly events: Events
  /** The client knows what an event without a message means. */
  readonly primes: boolean
  /** The connection is gone; what this gives is disposed of when another has come. */
  lost(): Disposable | undefined
  /** Nothing more will be sent. */
  over(): void
}

/** A stream of numbered events that outlives the connections which carry it. */
export class Feed {
  readonly #options: FeedOptions
  #connection: Connection | undefined
  #absence: Disposable | undefined
  #resumable = false
  #over = false

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Whether the client has an event to come back to. */
  get resumable(): boolean {
    return this.#resumable
  }

  /** Goes on, on this connection; behind the given number if there is one, with what was sent since first. */
  connect(connection: Connection, after?: number): void {
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

  #lose(connection: Connection): void {
    if (connection !== this.#connection || this.#over) return
    this.#connection = undefined
    this.#absence = this.#options.lost()
  }
}

const idOf = (stream: string, number: number): string => `${stream}-${number}`

/** Takes an event's id apart again; `undefined` if it cannot be one of ours. */
export function readEventId(id: string): { readonly stream: string; readonly number: number } | undefined {
  const [, stream, number] = /^([gp][1-9]\d{0,14})-(0|[1-9]\d{0,14})$/.exec(id) ?? []
  return stream === undefined ? undefined : { stream, number: Number(number) }
}
