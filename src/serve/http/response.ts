import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from 'node:http'
import type { BufferedRequest } from './request.ts'

/** The announced keep-alive timeout. */
export const keepAliveMs = 65_000

/** The connection of a response. */
interface Line {
  /** Whether to close the connection after a response whose head is not written yet. */
  leaving(): boolean
  /** The response is complete; `last` if the connection ends with it. */
  done(last: boolean): void
}

/**
 * The response to a buffered request. A complete response is sent in one write, without the overhead of node:http; any
 * other is passed to node:http together with the socket.
 */
export class BufferedResponse extends ServerResponse {
  // Internal fields of node:http: the time in `Keep-Alive`, and whether the written head announces that the connection
  // will be closed.
  declare _keepAliveTimeout: number
  declare readonly _last: boolean

  /** Whether a socket timeout means that the client is gone. */
  limited = false
  readonly #request: BufferedRequest
  readonly #line: Line
  #attached = false

  constructor(request: BufferedRequest, line: Line) {
    super(request as unknown as IncomingMessage)
    this.#request = request
    this.#line = line
  }

  /** Sends JSON in Latin-1; false if the response must go through node:http. */
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

  /** Marks the response as complete, unless node:http has the socket and does so itself. */
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

/** The Date header, formatted once a second. */
function dateNow(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    date = new Date(now * 1000).toUTCString()
  }
  return date
}
