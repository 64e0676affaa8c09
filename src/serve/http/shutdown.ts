import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { closesConnection } from './response.ts'

export interface OpenConnection {
  readonly socket: Socket
  requests: number
  /** The response to the newest of them. */
  response?: ServerResponse | undefined
  /** When the connection was opened or last answered a request, by `performance.now`. */
  usedAt: number
  /** Whether it was accepted during shutdown and has not sent a request yet: its client is about to send one. */
  isLate: boolean
  /** Set if node:http reads the connection: reads on after all requests are answered. */
  goOn?: () => void
  /** Whether the client has pipelined too many requests: the connection is closed after those before are answered. */
  isOverrun?: boolean
  /** Set if node:http reads the connection: the bytes up to the last answered request. More are part of a request. */
  bytesBefore?: number
}

/**
 * A connection without a request for this long is closed on shutdown. Clients that send one request after the other
 * send the next within this time, and its response tells them to close the connection (0047).
 */
const quietConnectionMs = 100

/** How long a client may take on shutdown to send the rest of its request headers, or its first request if it is late. */
const partialMs = 1_000

/** How long to read and discard data after the last response: closing a socket with unread data resets it. */
const closeLingerMs = 1_000

/**
 * How long to accept connections that the kernel has already established. Closing the listener would reset them. Most
 * are accepted at once; on a busy machine a turn of the event loop can take a tenth of a second.
 */
const maxAcceptMs = 1_000

const shutdownRefusal =
  'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'

/**
 * Tracks the connections of a server and closes them on shutdown without losing requests or responses in transit. Like
 * socket timeouts, it uses real time and not the injected clock.
 */
export class ConnectionDrain {
  readonly #connections = new Map<Socket, OpenConnection>()
  #accepted = 0
  #isDraining = false

  opened(socket: Socket): OpenConnection {
    this.#accepted++
    const connection = { socket, requests: 0, usedAt: performance.now(), isLate: this.#isDraining }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    if (this.#isDraining) this.#closeWhenQuiet(connection)
    return connection
  }

  of(socket: Socket): OpenConnection | undefined {
    return this.#connections.get(socket)
  }

  /** To be called when a connection has no more requests to answer. */
  answered(connection: OpenConnection): void {
    connection.requests = 0
    connection.response = undefined
    connection.isLate = false
    connection.usedAt = performance.now()
    if (this.#isDraining) this.#closeWhenQuiet(connection)
  }

  /** Accepts connections that wait in the kernel's queue. Node accepts one per turn of the event loop. */
  async acceptQueued(): Promise<void> {
    const until = performance.now() + maxAcceptMs
    // Two turns, because the first may end before the event loop polls.
    for (let quietTurns = 0; quietTurns < 2 && performance.now() < until; ) {
      const before = this.#accepted
      await turn()
      quietTurns = this.#accepted === before ? quietTurns + 1 : 0
    }
  }

  /**
   * Resolves when no request is expected on the connections that are open now. Once the headers of a response have been
   * sent, it can no longer tell the client to reconnect.
   */
  async untilQuiet(): Promise<void> {
    const open = [...this.#connections.values()]
    while (open.some(mayBeUsedSoon)) await sleep(quietConnectionMs / 4, undefined, { ref: false })
  }

  /** Resolves when all connections have ended. The ports do not know of those that other workers have handed over. */
  async untilClosed(): Promise<void> {
    while (this.#connections.size > 0) await sleep(quietConnectionMs / 4, undefined, { ref: false })
  }

  /** Closes every connection as soon as it is idle. */
  start(): void {
    this.#isDraining = true
    for (const connection of this.#connections.values()) this.#closeWhenQuiet(connection)
  }

  /** Closes all connections, also those with requests in flight. */
  closeAll(): void {
    for (const socket of this.#connections.keys()) {
      endGracefully(socket)
      destroyLater(socket)
    }
  }

  #closeWhenQuiet(connection: OpenConnection): void {
    const { socket, usedAt } = connection
    if (connection.requests > 0 || !socket.writable) return
    const { bytesRead } = socket
    const isExpecting = connection.isLate || hasPartialRequest(connection)
    const waitMs = isExpecting ? partialMs : Math.max(usedAt + quietConnectionMs - performance.now(), 0)
    const close = () => {
      if (socket.bytesRead !== bytesRead) this.#closeWhenQuiet(connection)
      else if (connection.requests === 0 && socket.writable) {
        if (hasPartialRequest(connection)) socket.write(shutdownRefusal)
        endGracefully(socket)
      }
    }
    // Wait one more turn, even if the time is over: requests that have already arrived are read first.
    setTimeout(() => setImmediate(close), waitMs).unref()
  }
}

/** Sends what is buffered, closes our side, and reads on until the client closes its side or `lingerMs` have passed. */
export function endGracefully(socket: Socket): void {
  if (!socket.writable) return
  socket.once('finish', () => destroyLater(socket))
  socket.end()
  socket.resume()
}

function destroyLater(socket: Socket): void {
  setTimeout(() => socket.destroy(), closeLingerMs).unref()
}

function mayBeUsedSoon({ socket, requests, response, usedAt }: OpenConnection): boolean {
  if (!socket.writable) return false
  return requests > 0 ? !response || !closesConnection(response) : performance.now() - usedAt < quietConnectionMs
}

const hasPartialRequest = ({ socket, bytesBefore }: OpenConnection): boolean =>
  bytesBefore !== undefined && socket.bytesRead > bytesBefore
