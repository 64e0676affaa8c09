import type { ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { joined, lengthOf, type Pieces } from '../../wire/bytes.ts'
import type { ResponseChannel } from '../calls/request-peer.ts'
import type { HttpHeaders } from '../errors.ts'
import { batchBytes } from '../mcp-legacy/batch.ts'
import type { ResumableStream, SessionStreams } from '../session/resumable-streams.ts'
import { BufferedResponse } from './response.ts'
import { dropWhenStalled, keepAliveMs, SseStream } from './sse-stream.ts'

/** The forms of an answer that a client says it takes. */
export interface AcceptedTypes {
  readonly json: boolean
  readonly stream: boolean
}

/** Reads an Accept header. A stream must be asked for by name: `*` and silence come from clients that expect JSON. */
export function readAccept(accept: string | undefined): AcceptedTypes {
  if (accept === undefined) return { json: true, stream: false }
  const types = accept.toLowerCase()
  return {
    json: types.includes('application/json') || types.includes('*/*') || types.includes('application/*'),
    stream: types.includes('text/event-stream') || types.includes('text/*'),
  }
}

/** Up to this an answer is cheaper to copy than to send apart from its head. */
const small = 16 * 1024

/** Beyond this an answer may be more than the kernel takes off our hands at once. */
const large = 64 * 1024

/** Beyond this an answer is worth resuming: a call that takes longer should survive a lost connection. */
const aMomentMs = 100

/**
 * The answer to one POST. It is plain JSON if the result comes first, and becomes a stream of events
 * as soon as something must be sent before the result, or when the client has waited long in silence.
 * In a session with streams of its own it becomes one that can be resumed after a moment already.
 */
export class PostResponse implements ResponseChannel {
  /** Who to tell when the client goes away before its answer. */
  owner: { cancel(): void } | undefined
  readonly #response: ServerResponse
  readonly #accepts: AcceptedTypes
  readonly #clock: Clock
  readonly #streams: SessionStreams | undefined
  readonly #timer: Disposable | undefined
  #line: Line | undefined
  #feed: ResumableStream | undefined
  #over = false

  constructor(response: ServerResponse, accepts: AcceptedTypes, clock: Clock, streams?: SessionStreams) {
    this.#response = response
    this.#accepts = accepts
    this.#clock = clock
    this.#streams = streams
    response.once('close', this.#gone)
    if (accepts.stream) this.#timer = clock.after(streams ? aMomentMs : keepAliveMs, this.#openLine)
  }

  send(message: Buffer): boolean {
    if (this.#over || !this.#accepts.stream) return false
    return this.#openLine().send(message)
  }

  /** Answers; a stream has its status and headers already, so that others can only be told where the answer is plain. */
  answer(message: Pieces, status = 200, headers?: HttpHeaders): void {
    if (!this.#finish()) return
    if (this.#line === undefined && (this.#accepts.json || status !== 200)) this.#write(message, status, headers)
    else this.#openLine().end(joined(message))
    // Whoever does not fetch a large answer must not keep it in our memory for ever.
    if (this.#response.writableLength > large) dropWhenStalled(this.#response)
  }

  #write(message: Pieces, status: number, headers: HttpHeaders | undefined): void {
    const response = this.#response
    const length = lengthOf(message)
    let text = ''
    if (length < small) {
      for (const piece of message) text += piece.toString('latin1')
      if (headers === undefined && response instanceof BufferedResponse && response.sendBuffered(status, text)) return
    }
    const shared = { 'Content-Type': 'application/json', 'Content-Length': length }
    response.writeHead(status, headers ? { ...headers, ...shared } : shared)
    if (length < small) {
      // Node sends a text together with the head, and bytes after it.
      response.end(text, 'latin1')
      return
    }
    response.cork()
    for (const piece of message) response.write(piece)
    response.end()
    response.uncork()
  }

  /** Answers a batch: in one array, or one after the other where the answer has become a stream. */
  answerBatch(messages: readonly Buffer[]): void {
    if (messages.length === 0) this.abandon()
    else if (this.#line === undefined && this.#accepts.json) this.answer([batchBytes(messages)])
    else {
      for (const message of messages.slice(0, -1)) this.send(message)
      this.answer([messages[messages.length - 1] as Buffer])
    }
  }

  abandon(): void {
    if (!this.#finish()) return
    // The protocol wants no answer to a cancelled request, and HTTP wants one: a stream without events is both.
    if (this.#line !== undefined) this.#line.end()
    else if (this.#accepts.stream) new SseStream(this.#response, this.#clock).end()
    else this.#response.writeHead(204).end()
  }

  #openLine = (): Line => {
    this.#timer?.[Symbol.dispose]()
    if (this.#line !== undefined) return this.#line
    const stream = new SseStream(this.#response, this.#clock)
    this.#feed = this.#streams?.open(stream, () => this.owner?.cancel())
    this.#line = this.#feed ?? stream
    return this.#line
  }

  /**
   * A lost connection is no cancellation where the client can come back for its answer. Where it cannot, because it
   * was never given an event to come back to, work that goes on would be for nobody.
   */
  #gone = (): void => {
    if (this.#feed?.resumable || !this.#finish()) return
    this.#feed?.end()
    this.owner?.cancel()
  }

  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#timer?.[Symbol.dispose]()
    return true
  }
}

/** Where messages go once the answer is a stream. */
interface Line {
  send(message: Buffer): boolean
  end(answer?: Buffer): void
}
