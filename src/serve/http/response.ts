import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from 'node:http'
import type { BufferedRequest } from './request.ts'

/** How long a connection may be idle between two requests, as clients are told. */
export const keepAliveMs = 65_000

/** The connection that an answer leaves by. */
interface Line {
  /** Whether it is to be closed behind an answer whose head has not been written yet. */
  leaving(): boolean
  /** It is free for the next request, or has had its last one. */
  done(last: boolean): void
}

/**
 * The answer to a request that came whole. One that is whole, too, leaves in one write, without what node:http does for
 * answers that come bit by bit; every other one is node:http's own, which is given the socket with its head.
 */
export class BufferedResponse extends ServerResponse {
  // node:http's server keeps these two, and nobody else can tell it: the time in `Keep-Alive`, and whether the head that
  // was written says that the connection will be closed.
  declare _keepAliveTimeout: number
  declare readonly _last: boolean

  /** Whether a silent socket means that the client has gone. */
  limited = false
  readonly #request: BufferedRequest
  readonly #line: Line
  #attached = false

  constructor(request: BufferedRequest, line: Line) {
    super(request as unknown as IncomingMessage)
    this.#request = request
    this.#line = line
  }

  /** Sends JSON, each character a byte; false where the answer has to be made in the usual way. */
  sendBuffered(status: number, json: string): boolean {
    if (this.#attached || this.destroyed || this.getHeaderNames().length > 0 || this.#line.leaving()) return false
    this.#request.socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n` +
        `Date: ${dateNow()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1000}\r\n\r\n${json}`,
      'latin1',
    )
    this.ended()
    this.#line.done(false)
    return true
  }

  override writeHead(status: number, headers?: unknown): this {
    this.#attach()
    if (this.#line.leaving()) this.shouldKeepAlive = false
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

  /** There is nothing more to be sent. Where node:http has the socket it tells that itself. */
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
      this.#line.done(this._last)
    })
  }
}

let second = 0
let date = ''

/** The time as HTTP writes it, made once a second. */
function dateNow(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    date = new Date(now * 1000).toUTCString()
  }
  return date
}
