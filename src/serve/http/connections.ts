import type { Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { HttpConfig } from '../../config/schema.ts'
import type { ConnectionHandle, HandedConnection } from '../../core/cluster.ts'
import { Budget, type Budgets } from '../../core/limits/budget.ts'
import { networkOf } from '../auth/throttle.ts'
import { BufferedRequest, createPostReader, type ReceivedRequest } from './request.ts'
import { BufferedResponse, type GiveConnection, keepAliveMs, type ResponseLine } from './response.ts'
import { ConnectionDrain, endGracefully, type OpenConnection } from './shutdown.ts'

const ignoreError = () => {}

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
const firstRequestMs = 10_000

/** Timeout between requests; longer than announced to clients, so that last-moment requests are still served. */
const keptAliveMs = keepAliveMs + 1_000

/** Maximum pipelined bytes to buffer per connection. Reading continues up to this limit, to notice disconnects. */
const maxHeldBytesPerConnection = 16 * 1024

/** Maximum number of unanswered requests on a connection that node:http reads. With more, the connection is closed. */
const maxPipelined = 8

interface HeldConnections {
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
    socket.on('error', ignoreError)
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
export class Connections {
  readonly drain = new ConnectionDrain()
  readonly #options: ConnectionsOptions
  readonly #limit: ConnectionLimit | undefined
  /** Connections that other workers have handed over. They are not handed over again. */
  readonly #adopted = new WeakSet<Socket>()

  constructor(options: ConnectionsOptions) {
    const { incoming, path, limit } = options
    this.#options = options
    this.#limit = limit
    const parts = { ...options, read: createPostReader(path), drain: this.drain, adopted: this.#adopted }
    incoming.release((socket) => {
      if (limit?.admit(socket) !== false) new FastConnection(parts, socket)
    })
  }

  /** Takes a connection that another worker hands over. Returns false to refuse it. */
  adopt({ handle, bytes }: HandedConnection): boolean {
    const { server, leaving } = this.#options
    if (leaving()) return false
    // First tell the other worker that the request may have been processed here.
    setImmediate(() => {
      const socket = new Socket({ handle, allowHalfOpen: true } as { allowHalfOpen: boolean })
      this.#adopted.add(socket)
      server.emit('connection', socket)
      socket.unshift(bytes)
    })
    return true
  }

  /** To be called with every request that node:http reads. Returns false if it cannot be answered any more. */
  begin(socket: Socket, response: ServerResponse): boolean {
    const connection = this.drain.of(socket)
    if (connection === undefined || !socket.writable || connection.isOverrun) return false
    if (connection.requests === maxPipelined) {
      connection.isOverrun = true
      socket.pause()
      return false
    }
    connection.requests++
    connection.response = response
    this.#limit?.begins(socket)
    response.once('close', () => this.#end(connection, response))
    return true
  }

  #end(connection: OpenConnection, { req }: ServerResponse): void {
    const { socket } = connection
    if (--connection.requests > 0) return
    this.#limit?.ends(socket)
    if (connection.isOverrun) {
      socket.destroySoon()
      return
    }
    connection.bytesBefore = socket.bytesRead
    this.drain.answered(connection)
    connection.goOn?.()
    // The rest of a body that was refused is not part of the next request.
    if (!req.complete) req.once('close', () => (connection.bytesBefore = socket.bytesRead))
  }
}

interface FastConnectionParts extends ConnectionsOptions {
  readonly read: ReturnType<typeof createPostReader>
  readonly drain: ConnectionDrain
  readonly adopted: WeakSet<Socket>
}

/** Node's cluster module uses this handle, too, to hand connections to workers. */
type SocketWithHandle = Socket & { _handle: ConnectionHandle | null }

class FastConnection implements ResponseLine {
  readonly leaving: () => boolean
  readonly #parts: FastConnectionParts
  readonly #socket: Socket
  readonly #connection: OpenConnection
  #response: BufferedResponse | undefined
  /** The request that is being answered. */
  #request: Buffer | undefined
  /** Bytes received before the previous response was complete. */
  #held: Buffer | undefined
  /** Whether the client has sent all of its requests, and we close our side once those that we hold are answered. */
  #isEnding = false

  constructor(parts: FastConnectionParts, socket: Socket) {
    this.leaving = parts.leaving
    this.#parts = parts
    this.#socket = socket
    this.#connection = parts.drain.opened(socket)
    for (const [event, listener] of Object.entries(this.#listeners)) socket.on(event, listener)
    socket.setNoDelay(true)
    socket.setTimeout(firstRequestMs)
  }

  done(isLast: boolean): void {
    const socket = this.#socket
    this.#response = undefined
    this.#request = undefined
    if (isLast) {
      endGracefully(socket)
      return
    }
    if (this.#held === undefined) {
      this.#parts.drain.answered(this.#connection)
      this.#parts.limit?.ends(socket)
    }
    if (socket.timeout !== keptAliveMs) socket.setTimeout(keptAliveMs)
    // Do not process further requests from a client that is not reading its responses.
    if (socket.writableNeedDrain) socket.once('drain', this.#goOn).pause()
    // Not in this iteration of the event loop: a client that pipelines requests would keep it from everybody else.
    else if (this.#held !== undefined) setImmediate(this.#goOn)
  }

  async transferConnection(give: GiveConnection): Promise<boolean> {
    const socket = this.#socket as SocketWithHandle
    const { _handle: handle } = socket
    const bytes = this.#request
    const isQuiet = this.#held === undefined && socket.writable && socket.writableLength + socket.readableLength === 0
    if (!handle || bytes === undefined || !isQuiet || this.#parts.adopted.has(socket)) return false
    // From here on, the client's bytes wait in the kernel for the process that reads them.
    handle.readStop()
    if (!(await give({ handle, bytes }))) {
      if (!socket.destroyed) handle.readStart()
      return false
    }
    if (socket.destroyed) return true
    // Close this process's copy only: ending the socket would end the connection.
    socket._handle = null
    handle.close()
    socket.destroy()
    return true
  }

  readonly #receive = (bytes: Buffer): void => {
    // If the previous response could not be sent, ignore the remaining bytes: the request in them must not run.
    if (!this.#socket.writable) return
    if (this.#response === undefined && this.#held === undefined) this.#next(bytes)
    else this.#hold(this.#held ? Buffer.concat([this.#held, bytes]) : bytes)
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes
    if (bytes.length > maxHeldBytesPerConnection) this.#socket.pause()
  }

  #next(bytes: Buffer): void {
    const { path, read, limit, handle } = this.#parts
    const socket = this.#socket
    const whole = read(bytes)
    if (whole === undefined) {
      this.#leave(bytes)
      return
    }
    if (whole.length < bytes.length) this.#hold(bytes.subarray(whole.length))
    const request = new BufferedRequest(socket, path, whole.headers, whole.body)
    const response = new BufferedResponse(request, this)
    this.#response = response
    this.#request = bytes
    this.#connection.requests = 1
    this.#connection.response = response
    limit?.begins(socket)
    if (socket.timeout !== keptAliveMs) socket.setTimeout(keptAliveMs)
    handle(request, response)
  }

  readonly #goOn = (): void => {
    const bytes = this.#held
    this.#held = undefined
    this.#socket.resume()
    if (bytes === undefined || !this.#socket.writable) return
    this.#next(bytes)
    // Only responses that are ready are sent: a client that ended its side does not wait.
    if (this.#isEnding && (this.#response !== undefined || this.#held === undefined)) this.#socket.end()
  }

  readonly #ended = (): void => {
    this.#isEnding = this.#response === undefined && this.#held !== undefined
    if (!this.#isEnding) this.#socket.end()
  }

  #leave(bytes: Buffer): void {
    const { server, incoming } = this.#parts
    const socket = this.#socket
    this.#connection.requests = 0
    this.#connection.bytesBefore = socket.bytesRead - bytes.length
    for (const [event, listener] of Object.entries(this.#listeners)) socket.off(event, listener)
    socket.setTimeout(0)
    socket.pause()
    socket.unshift(bytes)
    for (const listener of incoming.handOn) listener.call(server, socket)
    this.#connection.goOn = readInSlices(socket, this.#connection)
    socket.resume()
  }

  /** Closes a stalled connection, one tick later: data that arrived while the process was paused is read first. */
  readonly #silent = (): void => {
    const { bytesRead } = this.#socket
    setImmediate(() => {
      if (this.#socket.bytesRead === bytesRead && this.#hasStalled()) this.#socket.destroy()
    })
  }

  #hasStalled(): boolean {
    const response = this.#response
    if (response === undefined || response.writableEnded) return true
    return response.limited && response.writableLength > 0
  }

  readonly #listeners = {
    ...{ data: this.#receive, end: this.#ended, timeout: this.#silent, error: ignoreError },
    close: () => this.#response?.ended(),
  }
}

/** Bytes that node:http gets at a time, at the start of a request and within one: it begins all requests in them at once. */
const maxFirstSlice = 1024
const maxSlice = 4 * 1024

/** Whether the newest request has arrived as a whole and is not answered: what follows is pipelined. */
const isWaiting = ({ requests, response }: OpenConnection): boolean => requests > 0 && response?.req.complete === true

/**
 * Reads a connection for node:http, a small part at a time and nothing while a request waits for its answer. On its own,
 * node:http begins all pipelined requests of a chunk at once, thousands of them, and reads on: a few connections keep it
 * from everybody else for minutes (V6). To be called when node:http has the connection. Returns a function to be called
 * when all of the connection's requests are answered.
 */
function readInSlices(socket: Socket, connection: OpenConnection): () => void {
  let held: Buffer | undefined
  const passOn = socket.listeners('data') as ((bytes: Buffer) => void)[]
  for (const listener of passOn) socket.off('data', listener)
  // This also makes node:http take its data from this event instead of the socket's handle.
  socket.on('data', (bytes: Buffer) => {
    if (connection.isOverrun) return
    if (held === undefined) pass(bytes)
    else hold(Buffer.concat([held, bytes]))
  })

  const hold = (bytes: Buffer) => {
    held = bytes
    if (bytes.length > maxHeldBytesPerConnection) socket.pause()
  }

  const pass = (bytes: Buffer) => {
    // Not writable: node:http has closed the connection, for example because of an invalid request.
    for (let at = 0; at < bytes.length && socket.writable && !connection.isOverrun; ) {
      if (isWaiting(connection)) {
        hold(bytes.subarray(at))
        return
      }
      const slice = bytes.subarray(at, at + (connection.requests > 0 ? maxSlice : maxFirstSlice))
      at += slice.length
      for (const listener of passOn) listener.call(socket, slice)
    }
  }

  const goOn = () => {
    const bytes = held
    held = undefined
    if (bytes === undefined || socket.destroyed) return
    socket.resume()
    pass(bytes)
  }
  return () => {
    if (held !== undefined) setImmediate(goOn)
  }
}

const tooManyConnections =
  'HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'

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
        socket.end(tooManyConnections)
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
