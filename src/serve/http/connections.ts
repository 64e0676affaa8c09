import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf } from '../auth/address-limit.ts'
import { BufferedRequest, createPostReader, type ReceivedRequest } from './request.ts'
import { BufferedResponse, keepAliveMs } from './response.ts'

export interface ConnectionsOptions {
  readonly server: Server
  /** The path of the fast path. */
  readonly path: string
  /** False for a connection that was rejected and closed. */
  admit?(socket: Socket): boolean
  handle(request: ReceivedRequest, response: ServerResponse): void
  /** Whether to close connections after their response. */
  leaving(): boolean
}

/** The connections on which only buffered requests have arrived so far. */
export interface FastPathConnections {
  closeIdle(): void
  closeAll(): void
}

interface Connection {
  readonly socket: Socket
  /** Between two requests; not before the first one. */
  idle: boolean
}

/** Time until the first request. */
const silentMs = 10_000

/** A little more than announced, so that a request at the last moment is still served. */
const idleMs = keepAliveMs + 1_000

/** Bytes that a client may send ahead. Reading on is needed to notice a disconnect. */
const maxHeld = 16 * 1024

/**
 * A fast path before node:http: requests that arrive in one piece are read here, at half the cost. A connection on which
 * anything else arrives is passed to node:http for good, starting with the unanswered bytes.
 */
export function acceptConnections({ server, path, admit, handle, leaving }: ConnectionsOptions): FastPathConnections {
  const handOn = server.listeners('connection')
  const read = createPostReader(path)
  const connections = new Set<Connection>()
  server.removeAllListeners('connection')
  server.on('connection', take)
  return {
    closeIdle() {
      for (const { socket, idle } of connections) if (idle) socket.destroySoon()
    },
    closeAll() {
      for (const { socket } of connections) socket.destroy()
    },
  }

  function take(socket: Socket): void {
    if (admit?.(socket) === false) return
    let response: BufferedResponse | undefined
    /** Received before the previous response was sent. */
    let held: Buffer | undefined
    const connection: Connection = { socket, idle: false }
    const line = { leaving, done }
    const listeners = { data: heard, end: () => socket.end(), close: closed, timeout: silent, error: ignored }
    connections.add(connection)
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener)
    socket.setNoDelay(true)
    socket.setTimeout(silentMs)

    function heard(bytes: Buffer): void {
      // Do not run a request that cannot be answered.
      if (!socket.writable) return
      if (response === undefined && held === undefined) next(bytes)
      else hold(held ? Buffer.concat([held, bytes]) : bytes)
    }

    function hold(bytes: Buffer): void {
      held = bytes
      if (bytes.length > maxHeld) socket.pause()
    }

    function next(bytes: Buffer): void {
      const whole = read(bytes)
      if (whole === undefined) {
        leave(bytes)
        return
      }
      if (whole.length < bytes.length) hold(bytes.subarray(whole.length))
      const request = new BufferedRequest(socket, path, whole.headers, whole.body)
      response = new BufferedResponse(request, line)
      connection.idle = false
      allow(idleMs)
      handle(request, response)
    }

    function done(last: boolean): void {
      response = undefined
      if (last) {
        socket.destroySoon()
        return
      }
      connection.idle = held === undefined
      allow(idleMs)
      // Accept no further requests from a client that does not read.
      if (socket.writableNeedDrain) socket.once('drain', goOn).pause()
      else if (held !== undefined) process.nextTick(goOn)
    }

    function goOn(): void {
      const bytes = held
      held = undefined
      socket.resume()
      if (bytes !== undefined && socket.writable) next(bytes)
    }

    function leave(bytes: Buffer): void {
      connections.delete(connection)
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
      socket.setTimeout(0)
      socket.pause()
      socket.unshift(bytes)
      for (const listener of handOn) listener.call(server, socket)
      socket.resume()
    }

    function allow(ms: number): void {
      if (socket.timeout !== ms) socket.setTimeout(ms)
    }

    /** One tick later, so that data which arrived while the process was paused is read first. */
    function silent(): void {
      const { bytesRead } = socket
      setImmediate(() => {
        if (socket.bytesRead === bytesRead && hasStalled()) socket.destroy()
      })
    }

    function hasStalled(): boolean {
      if (response === undefined || response.writableEnded) return true
      return response.limited && response.writableLength > 0
    }

    function closed(): void {
      connections.delete(connection)
      response?.ended()
    }
  }
}

const ignored = () => {}

/** The response to a connection beyond the limit. */
const refusal = 'HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'

/** Bounds the connections of one address (IPv6: of a /64). False for one too many, which is refused and closed. */
export function createConnectionLimit(max: number): (socket: Socket) => boolean {
  const open = new Map<string, number>()
  return (socket) => {
    const network = networkOf(socket.remoteAddress ?? '')
    const count = open.get(network) ?? 0
    if (count >= max) {
      socket.on('error', () => {})
      socket.end(refusal)
      socket.destroySoon()
      return false
    }
    open.set(network, count + 1)
    socket.once('close', () => {
      const left = (open.get(network) ?? 1) - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    })
    return true
  }
}
