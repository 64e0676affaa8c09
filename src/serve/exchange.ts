import type { ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { Outlet } from './peer.ts'
import { dropWhenStalled, EventStream, keepAliveMs } from './stream.ts'

/** The forms of an answer that a client says it takes. */
export interface Accepts {
  readonly json: boolean
  readonly stream: boolean
}

/** Reads an Accept header. A stream must be asked for by name: `*` and silence come from clients that expect JSON. */
export function readAccept(accept: string | undefined): Accepts {
  if (accept === undefined) return { json: true, stream: false }
  const types = accept.toLowerCase()
  return {
    json: types.includes('application/json') || types.includes('*/*') || types.includes('application/*'),
    stream: types.includes('text/event-stream') || types.includes('text/*'),
  }
}

/** Beyond this an answer may be more than the kernel takes off our hands at once. */
const large = 64 * 1024

/**
 * The answer to one POST. It is plain JSON if the result comes first, and becomes a stream of events
 * as soon as something must be sent before the result, or when the client has waited long in silence.
 */
export class Exchange implements Outlet {
  /** Who to tell when the client goes away before its answer. */
  owner: { cancel(): void } | undefined
  readonly #response: ServerResponse
  readonly #accepts: Accepts
  readonly #clock: Clock
  readonly #timer: Disposable | undefined
  #stream: EventStream | undefined
  #over = false

  constructor(response: ServerResponse, accepts: Accepts, clock: Clock) {
    this.#response = response
    this.#accepts = accepts
    this.#clock = clock
    response.once('close', this.#gone)
    if (accepts.stream) this.#timer = clock.after(keepAliveMs, this.#openStream)
  }

  send(message: Buffer): boolean {
    if (this.#over || !this.#accepts.stream) return false
    return this.#openStream().send(message)
  }

  answer(message: Buffer): void {
    if (!this.#finish()) return
    if (this.#stream === undefined && this.#accepts.json) {
      const length = message.length
      this.#response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': length }).end(message)
    } else {
      const stream = this.#openStream()
      stream.send(message)
      stream.end()
    }
    // Whoever does not fetch a large answer must not keep it in our memory for ever.
    if (this.#response.writableLength > large) dropWhenStalled(this.#response)
  }

  abandon(): void {
    if (!this.#finish()) return
    // The protocol wants no answer to a cancelled request, and HTTP wants one: a stream without events is both.
    if (this.#stream !== undefined || this.#accepts.stream) this.#openStream().end()
    else this.#response.writeHead(204).end()
  }

  #openStream = (): EventStream => {
    this.#timer?.[Symbol.dispose]()
    this.#stream ??= new EventStream(this.#response, this.#clock)
    return this.#stream
  }

  /**
   * To the legacy era a lost connection is no cancellation, because the client may come back for its answer.
   * Nobody can fetch an answer here afterwards, so work that goes on would be for nobody.
   */
  #gone = (): void => {
    if (this.#finish()) this.owner?.cancel()
  }

  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#timer?.[Symbol.dispose]()
    return true
  }
}
