import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse, STATUS_CODES } from 'node:http'
import type { BufferedRequest } from './request.ts'

/** Idle time that the Keep-Alive header announces to clients. */
export const keepAliveMs = 65_000

interface Line {
  /** Whether to close the connection after a response whose headers have not been written yet. */
  leaving(): boolean
  /** Called when the response is complete. `last` is true if the connection must close. */
  done(last: boolean): void
}

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
  readonly #line: Line
  #attached = false

  constructor(request: BufferedRequest, line: Line) {
    super(request as unknown as IncomingMessage)
    this.#request = request
    this.#line = line
  }

  /** Sends JSON, given as Latin-1 text. Returns false if the response must be sent through node:http. */
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
      this.#line.done(this._last)
    })
  }
}

/** Whether the client has been told that this is the last response on its connection. */
export const closesConnection = (response: ServerResponse): boolean => (response as BufferedResponse)._last

export function sendJson(response: ServerResponse, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
}

let second = 0
let date = ''

/** The Date header's value. It is formatted at most once a second. */
function dateNow(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    date = new Date(now * 1000).toUTCString()
  }
  return date
}
