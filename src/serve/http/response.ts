import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { HandedConnection } from '../../core/cluster.ts'
import { joined, lengthOf, type Pieces } from '../../wire/bytes.ts'
import type { ResponseChannel } from '../calls/operations.ts'
import type { HttpHeaders } from '../errors.ts'
import { batchPieces } from '../mcp-legacy/protocol.ts'
import type { ResumableStream, SessionStreams, StreamedRequest } from '../session/resumable-streams.ts'
import type { BufferedRequest } from './request.ts'
import {
  dropWhenStalled,
  largeUnread,
  type Reader,
  SseStream,
  commentEveryMs as streamKeepAliveMs,
} from './sse-stream.ts'

/** Idle time that the Keep-Alive header announces to clients. */
export const keepAliveMs = 65_000

export interface ResponseLine {
  /** Whether to close the connection after a response whose headers have not been written yet. */
  leaving(): boolean
  /** Called when the response is complete. `last` is true if the connection must close. */
  done(last: boolean): void
  /**
   * Hands the connection with the unanswered request to another process. Resolves with false if it stays here; otherwise,
   * it looks as if the client has disconnected.
   */
  transferConnection(give: GiveConnection): Promise<boolean>
}

/** Resolves with false if the other process has certainly not taken the connection. */
export type GiveConnection = (connection: HandedConnection) => Promise<boolean>

/**
 * The response to a buffered request. `sendBuffered` sends a complete response in one write, without the overhead of
 * node:http. Any other write method attaches the socket to node:http.
 */
export class BufferedResponse extends ServerResponse {
  // Internal fields of node:http: the timeout in `Keep-Alive`, and whether the headers say `Connection: close`.
  declare _keepAliveTimeout: number
  declare readonly _last: boolean

  /** Whether the client counts as stalled if the socket times out while data is unsent. */
  limited = false
  readonly #request: BufferedRequest
  readonly line: ResponseLine
  #attached = false

  constructor(request: BufferedRequest, line: ResponseLine) {
    super(request as unknown as IncomingMessage)
    this.#request = request
    this.line = line
  }

  /** Sends JSON, given as Latin-1 text. Returns false if the response must be sent through node:http. */
  sendBuffered(status: number, json: string): boolean {
    if (this.#attached || this.destroyed || this.getHeaderNames().length > 0 || this.line.leaving()) return false
    this.#request.socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n` +
        `Date: ${dateNow()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1000}\r\n\r\n${json}`,
      'latin1',
    )
    this.ended()
    this.line.done(false)
    return true
  }

  override writeHead(status: number, headers?: unknown): this {
    this.#attach()
    if (this.line.leaving()) this.shouldKeepAlive = false
    return super.writeHead(status, headers as OutgoingHttpHeaders)
  }

  override destroy(error?: Error): this {
    this.#attach()
    return super.destroy(error)
  }

  override setTimeout(ms: number): this {
    this.#attach()
    this.limited = true
    return super.setTimeout(ms)
  }

  /** Closes the response. If the response is attached to node:http, node:http closes it instead. */
  ended(): void {
    if (!this.#attached) super.destroy()
  }

  #attach(): void {
    if (this.#attached || this.destroyed) return
    this.#attached = true
    this._keepAliveTimeout = keepAliveMs
    const { socket } = this.#request
    this.assignSocket(socket)
    const drained = () => this.emit('drain')
    socket.on('drain', drained)
    this.once('close', () => socket.off('drain', drained))
    this.once('finish', () => {
      this.detachSocket(socket)
      this.#attached = false
      this.ended()
      this.line.done(this._last)
    })
  }
}

/** Whether the client has been told that this is the last response on its connection. */
export const closesConnection = (response: ServerResponse): boolean => (response as BufferedResponse)._last

export function sendJson(response: ServerResponse, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
}

let dateSecond = 0
let dateHeader = ''

/** The Date header's value. It is formatted at most once a second. */
function dateNow(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== dateSecond) {
    dateSecond = now
    dateHeader = new Date(now * 1000).toUTCString()
  }
  return dateHeader
}

export interface AcceptedTypes {
  readonly json: boolean
  readonly stream: boolean
}

/** The types that a client accepts. A stream must be named: a wildcard or no Accept header means JSON. */
export function readAccept(accept: string | undefined): AcceptedTypes {
  if (accept === undefined) return { json: true, stream: false }
  const types = accept.toLowerCase()
  return {
    json: types.includes('application/json') || types.includes('*/*') || types.includes('application/*'),
    stream: types.includes('text/event-stream') || types.includes('text/*'),
  }
}

/** Maximum size of a body that is copied into the same write as the headers, which is cheaper than a second write. */
const smallResponse = 16 * 1024

/** Time after which a call in a session switches to a resumable stream, so that it survives a lost connection. */
const resumableAfterMs = 100

/**
 * The response to one POST. It is JSON if the result is the first message. It becomes an event stream if another
 * message comes first or the result takes too long. In a session, the stream is resumable.
 */
export class PostResponse implements ResponseChannel {
  owner: { cancel(): void } | undefined
  readonly #response: ServerResponse
  readonly #accepts: AcceptedTypes
  readonly #clock: Clock
  readonly #streams: SessionStreams | undefined
  readonly #request: StreamedRequest | undefined
  readonly #reader: Reader
  readonly #timer: Disposable | undefined
  #line: SseStream | ResumableStream | undefined
  #feed: ResumableStream | undefined
  #over = false

  constructor(
    response: ServerResponse,
    accepts: AcceptedTypes,
    options: Reader & {
      readonly clock: Clock
      readonly streams?: SessionStreams
      readonly request?: StreamedRequest | undefined
    },
  ) {
    const { clock, streams } = options
    this.#response = response
    this.#accepts = accepts
    this.#clock = clock
    this.#reader = options
    this.#streams = streams
    this.#request = options.request
    response.once('close', this.#gone)
    if (accepts.stream) this.#timer = clock.after(streams ? resumableAfterMs : streamKeepAliveMs, this.#openLine)
  }

  send(message: Buffer): boolean {
    if (this.#over || !this.#accepts.stream) return false
    return this.#openLine().send(message)
  }

  /** Sends the result. Status and headers are ignored if the response is already a stream. */
  answer(message: Pieces, status = 200, headers?: HttpHeaders): void {
    if (!this.#finish()) return
    if (this.#line === undefined && (this.#accepts.json || status !== 200)) this.#write(message, status, headers)
    else this.#openLine().end(joined(message))
    // If the client is not reading, a large response would stay in memory, so disconnect the client when it stalls.
    if (this.#response.writableLength > largeUnread) {
      dropWhenStalled(this.#response)
      this.#reader.unread.note(this.#response, this.#reader.caller)
    }
  }

  #write(message: Pieces, status: number, headers: HttpHeaders | undefined): void {
    const response = this.#response
    const length = lengthOf(message)
    let text = ''
    if (length < smallResponse) {
      for (const piece of message) text += piece.toString('latin1')
      if (headers === undefined && response instanceof BufferedResponse && response.sendBuffered(status, text)) return
    }
    const shared = { 'Content-Type': 'application/json', 'Content-Length': length }
    response.writeHead(status, headers ? { ...headers, ...shared } : shared)
    if (length < smallResponse) {
      // node:http sends a string in the same write as the headers, but a buffer in a separate one.
      response.end(text, 'latin1')
      return
    }
    response.cork()
    for (const piece of message) response.write(piece)
    response.end()
    response.uncork()
  }

  /** Sends the responses as one JSON array, or one by one on a stream. */
  answerBatch(messages: readonly Buffer[]): void {
    if (messages.length === 0) this.abandon()
    else if (this.#line === undefined && this.#accepts.json) this.answer(batchPieces(messages))
    else {
      for (const message of messages.slice(0, -1)) this.send(message)
      this.answer([messages[messages.length - 1] as Buffer])
    }
  }

  abandon(): void {
    if (!this.#finish()) return
    // MCP forbids a response to a cancelled request, but HTTP requires one: send a stream without events, or 204.
    if (this.#line !== undefined) this.#line.end()
    else if (this.#accepts.stream) new SseStream(this.#response, this.#clock).end()
    else this.#response.writeHead(204).end()
  }

  #openLine = (): SseStream | ResumableStream => {
    this.#timer?.[Symbol.dispose]()
    if (this.#line !== undefined) return this.#line
    const stream = new SseStream(this.#response, this.#clock, this.#reader)
    this.#feed = this.#streams?.open(stream, () => this.owner?.cancel(), this.#request)
    this.#line = this.#feed ?? stream
    return this.#line
  }

  /** Called when the connection is lost. Cancels the call, unless the client can resume the stream. */
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
