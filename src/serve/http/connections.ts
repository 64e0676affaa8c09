import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { HttpConfig } from '../../config/schema.ts'
import { Budget, type Budgets } from '../../core/limits/budget.ts'
import { networkOf } from '../auth/throttle.ts'
import { readInSlices } from './pipelining.ts'
import { BufferedRequest, createPostReader, type ReceivedRequest } from './request.ts'
import { BufferedResponse, closesConnection, keepAliveMs } from './response.ts'

interface ConnectionsOptions {
  readonly server: Server
  readonly incoming: HeldConnections
  /** Only POST requests to this path take the fast path. */
  readonly path: string
  readonly limit?: ConnectionLimit
  handle(request: ReceivedRequest, response: ServerResponse): void
  leaving(): boolean
}

interface ConnectionLimit {
  /** Decides whether to accept a connection. Returns false after rejecting and closing it. */
  admit(socket: Socket): boolean
  /** To be called when a connection begins and ends a request. Between requests, it may have to make way for others. */
  begins(socket: Socket): void
  ends(socket: Socket): void
}

/** How long a new connection may wait before it sends its first request. */
const silentMs = 10_000

/** Timeout between requests; longer than announced to clients, so that last-moment requests are still served. */
const idleMs = keepAliveMs + 1_000

/** Maximum pipelined bytes to buffer per connection. Reading continues up to this limit, to notice disconnects. */
const maxHeld = 16 * 1024

/** Maximum number of unanswered requests on a connection that node:http reads. With more, the connection is closed. */
const maxPipelined = 8

/** Connections that wait until the server can serve them. */
interface HeldConnections {
  /** The listeners with which node:http reads connections. */
  readonly handOn: readonly Listener[]
  /** Passes these and all later connections to `take`. */
  release(take: (socket: Socket) => void): void
}

type Listener = ReturnType<Server['listeners']>[number]

/**
 * Holds connections, and must be called before the server listens: the primary process may hand the first connection to
 * a worker before the code that waits for `listening` has run. node:http would read it without the listeners that answer.
 */
export function holdConnections(server: Server): HeldConnections {
  const handOn = server.listeners('connection')
  const held = new Set<Socket>()
  const hold = (socket: Socket) => {
    held.add(socket)
    socket.on('error', ignored)
    socket.once('close', () => held.delete(socket))
  }
  server.removeAllListeners('connection')
  server.on('connection', hold)
  return {
    handOn,
    release(take) {
      server.off('connection', hold)
      server.on('connection', take)
      for (const socket of held) take(socket)
      held.clear()
    },
  }
}

/**
 * A fast path in front of node:http. It handles requests that arrive in one piece, at half the cost. When anything else
 * arrives, the connection moves permanently to node:http, which starts with the unprocessed bytes.
 */
export function acceptConnections({ server, incoming, path, limit, handle, leaving }: ConnectionsOptions) {
  const read = createPostReader(path)
  const drain = createDrain()
  incoming.release(take)
  return {
    drain,
    /** To be called with every request that node:http reads. Returns false if it cannot be answered any more. */
    begin(socket: Socket, response: ServerResponse): boolean {
      const connection = drain.of(socket)
      if (connection === undefined || !socket.writable || connection.isOverrun) return false
      if (connection.requests === maxPipelined) {
        connection.isOverrun = true
        socket.pause()
        return false
      }
      connection.requests++
      connection.response = response
      limit?.begins(socket)
      response.once('close', () => {
        if (--connection.requests > 0) return
        limit?.ends(socket)
        if (connection.isOverrun) {
          socket.destroySoon()
          return
        }
        connection.bytesBefore = socket.bytesRead
        drain.answered(connection)
        connection.goOn?.()
        // The rest of a body that was refused is not part of the next request.
        const { req } = response
        if (!req.complete) req.once('close', () => (connection.bytesBefore = socket.bytesRead))
      })
      return true
    },
  }

  function take(socket: Socket): void {
    if (limit?.admit(socket) === false) return
    let response: BufferedResponse | undefined
    /** Bytes received before the previous response was complete. */
    let held: Buffer | undefined
    /** Whether the client has sent all of its requests, and we close our side once those that we hold are answered. */
    let isEnding = false
    const connection = drain.opened(socket)
    const line = { leaving, done }
    const listeners = { data: onData, end: ended, close: closed, timeout: silent, error: ignored }
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener)
    socket.setNoDelay(true)
    socket.setTimeout(silentMs)

    function onData(bytes: Buffer): void {
      // If the previous response could not be sent, ignore the remaining bytes: the request in them must not run.
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
      connection.requests = 1
      connection.response = response
      limit?.begins(socket)
      allow(idleMs)
      handle(request, response)
    }

    function done(last: boolean): void {
      response = undefined
      if (last) {
        endGracefully(socket)
        return
      }
      if (held === undefined) {
        drain.answered(connection)
        limit?.ends(socket)
      }
      allow(idleMs)
      // Do not process further requests from a client that is not reading its responses.
      if (socket.writableNeedDrain) socket.once('drain', goOn).pause()
      // Not in this iteration of the event loop: a client that pipelines requests would keep it from everybody else.
      else if (held !== undefined) setImmediate(goOn)
    }

    function goOn(): void {
      const bytes = held
      held = undefined
      socket.resume()
      if (bytes === undefined || !socket.writable) return
      next(bytes)
      // Only responses that are ready are sent: a client that ended its side does not wait.
      if (isEnding && (response !== undefined || held === undefined)) socket.end()
    }

    function ended(): void {
      isEnding = response === undefined && held !== undefined
      if (!isEnding) socket.end()
    }

    function leave(bytes: Buffer): void {
      connection.requests = 0
      connection.bytesBefore = socket.bytesRead - bytes.length
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
      socket.setTimeout(0)
      socket.pause()
      socket.unshift(bytes)
      for (const listener of incoming.handOn) listener.call(server, socket)
      connection.goOn = readInSlices(socket, connection)
      socket.resume()
    }

    function allow(ms: number): void {
      if (socket.timeout !== ms) socket.setTimeout(ms)
    }

    /** Closes a stalled connection, one tick later: data that arrived while the process was paused is read first. */
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
      response?.ended()
    }
  }
}

const ignored = () => {}

const refusal = 'HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'

type ConnectionLimits = Pick<HttpConfig, 'maxConnections' | 'maxConnectionsPerAddress'>

/**
 * Limits the connections per address (IPv6: per /64). At the limit, the connection that has been without a request for
 * the longest time is closed for a new one: one client that opens many must not lock out others behind the same proxy.
 */
export function createConnectionLimit(config: ConnectionLimits, budgets: Budgets): ConnectionLimit {
  const limits = { limit: config.maxConnections, perCaller: config.maxConnectionsPerAddress }
  const open = new Budget('connections', { what: 'connections', ...limits })
  /** The connections without a request, by address; the first has been without one the longest. */
  const unused = new Map<string, Set<Socket>>()
  const addresses = new WeakMap<Socket, Set<Socket>>()
  budgets.register('connections', () => open.use())

  const makeRoom = (network: string): boolean => {
    const [oldest] = unused.get(network) ?? []
    if (oldest === undefined) return false
    oldest.destroy()
    release(oldest, network)
    return open.take(network) === undefined
  }

  const release = (socket: Socket, network: string) => {
    const own = addresses.get(socket)
    if (own === undefined) return
    addresses.delete(socket)
    own.delete(socket)
    open.give(network)
    if (open.usedBy(network) === 0) unused.delete(network)
  }

  return {
    admit(socket) {
      const network = networkOf(socket.remoteAddress ?? '')
      if (open.take(network) && !makeRoom(network)) {
        socket.on('error', () => {})
        socket.end(refusal)
        socket.destroySoon()
        return false
      }
      const own = unused.get(network) ?? new Set()
      unused.set(network, own)
      own.add(socket)
      addresses.set(socket, own)
      socket.once('close', () => release(socket, network))
      return true
    },
    begins: (socket) => void addresses.get(socket)?.delete(socket),
    ends: (socket) => void addresses.get(socket)?.add(socket),
  }
}

interface OpenConnection {
  readonly socket: Socket
  /** Requests that have not been answered. */
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
const quietMs = 100

/** How long a client may take on shutdown to send the rest of its request headers, or its first request if it is late. */
const partialMs = 1_000

/** How long to read and discard data after the last response: closing a socket with unread data resets it. */
const lingerMs = 1_000

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
function createDrain() {
  const connections = new Map<Socket, OpenConnection>()
  let accepted = 0
  let draining = false

  const closeWhenQuiet = (connection: OpenConnection) => {
    const { socket, usedAt } = connection
    if (connection.requests > 0 || !socket.writable) return
    const { bytesRead } = socket
    const isExpecting = connection.isLate || hasPartialRequest(connection)
    const waitMs = isExpecting ? partialMs : Math.max(usedAt + quietMs - performance.now(), 0)
    const close = () => {
      if (socket.bytesRead !== bytesRead) closeWhenQuiet(connection)
      else if (connection.requests === 0 && socket.writable) {
        if (hasPartialRequest(connection)) socket.write(shutdownRefusal)
        endGracefully(socket)
      }
    }
    // Wait one more turn, even if the time is over: requests that have already arrived are read first.
    setTimeout(() => setImmediate(close), waitMs).unref()
  }

  return {
    opened(socket: Socket): OpenConnection {
      accepted++
      const connection = { socket, requests: 0, usedAt: performance.now(), isLate: draining }
      connections.set(socket, connection)
      socket.once('close', () => connections.delete(socket))
      if (draining) closeWhenQuiet(connection)
      return connection
    },
    of: (socket: Socket) => connections.get(socket),
    /** To be called when a connection has no more requests to answer. */
    answered(connection: OpenConnection): void {
      connection.requests = 0
      connection.response = undefined
      connection.isLate = false
      connection.usedAt = performance.now()
      if (draining) closeWhenQuiet(connection)
    },
    /** Accepts connections that wait in the kernel's queue. Node accepts one per turn of the event loop. */
    async acceptQueued(): Promise<void> {
      const until = performance.now() + maxAcceptMs
      // Two turns, because the first may end before the event loop polls.
      for (let quietTurns = 0; quietTurns < 2 && performance.now() < until; ) {
        const before = accepted
        await turn()
        quietTurns = accepted === before ? quietTurns + 1 : 0
      }
    },
    /**
     * Resolves when no request is expected on the connections that are open now. Once the headers of a response have been
     * sent, it can no longer tell the client to reconnect.
     */
    async untilQuiet(): Promise<void> {
      const open = [...connections.values()]
      while (open.some(mayBeUsedSoon)) await sleep(quietMs / 4, undefined, { ref: false })
    },
    /** Closes every connection as soon as it is idle. */
    start(): void {
      draining = true
      for (const connection of connections.values()) closeWhenQuiet(connection)
    },
    /** Closes all connections, also those with requests in flight. */
    closeAll(): void {
      for (const { socket } of connections.values()) {
        endGracefully(socket)
        destroyLater(socket)
      }
    },
  }
}

/** Sends what is buffered, closes our side, and reads on until the client closes its side or `lingerMs` have passed. */
function endGracefully(socket: Socket): void {
  if (!socket.writable) return
  socket.once('finish', () => destroyLater(socket))
  socket.end()
  socket.resume()
}

function destroyLater(socket: Socket): void {
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

function mayBeUsedSoon({ socket, requests, response, usedAt }: OpenConnection): boolean {
  if (!socket.writable) return false
  return requests > 0 ? !response || !closesConnection(response) : performance.now() - usedAt < quietMs
}

const hasPartialRequest = ({ socket, bytesBefore }: OpenConnection): boolean =>
  bytesBefore !== undefined && socket.bytesRead > bytesBefore
