import type { connect as TlsConnect } from 'node:tls'
import type { Clock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { fixedLimits } from '../../../core/limits/fixed-limits.ts'
import { proxyFor, type WebProxy } from '../../../egress/proxy.ts'
import {
  type ChannelRequest,
  ConnectTimeout,
  type HttpChannel,
  NoResponse,
  type ReceiveBody,
  type ResponseHead,
} from '../http-channel.ts'
import { HttpConnection } from './connection.ts'

const socketWithinMs = 10_000

// If the server closes a connection while we write to it, the outcome of the request is unknown. So a connection is not
// reused after a long idle time, or shortly before the server's own keep-alive timeout.
const usualIdleMs = 4_000
const maxConnectionIdleMs = 15_000
const marginMs = 2_000

export interface ChannelOptions {
  /** The maximum number of open connections, so that a slow server cannot exhaust the file descriptors. */
  readonly maxConnections?: number
  readonly proxy?: WebProxy | undefined
}

interface IdleConnection {
  readonly connection: HttpConnection
  readonly until: number
}

/** HTTP/1.1 to one origin, with one connection per concurrent request. */
export class Http1Channel implements HttpChannel, AsyncDisposable {
  /** How many times the last open connection was closed. Since then, another server may be listening at this origin. */
  gaps = 0
  readonly #origin: URL
  readonly #clock: Clock
  readonly #maxConnections: number
  readonly #proxy: WebProxy | undefined
  readonly #open = new Set<HttpConnection>()
  /** The most recently used one is last, and reused first. */
  #idle: IdleConnection[] = []
  #sweeping: Disposable | undefined
  #isClosed = false

  /** Throws if the environment names an unusable proxy. */
  constructor(address: string, clock: Clock, options: ChannelOptions = {}) {
    this.#origin = new URL(address)
    this.#clock = clock
    this.#maxConnections = options.maxConnections ?? fixedLimits.serverConnections.value
    this.#proxy = options.proxy ?? environmentProxy(this.#origin)
  }

  /** Whether a connection on which the server has responded is still open. */
  get connected(): boolean {
    for (const { answered } of this.#open) if (answered) return true
    return false
  }

  request(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead> {
    if (request.signal?.aborted) return Promise.reject(request.signal.reason)
    const known = this.#reuse()
    return known ? known.ask(request, receive) : this.#connectAndAsk(request, receive)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    this.#sweeping?.[Symbol.dispose]()
    for (const connection of this.#open) connection.lose(new Error('the channel is closed'))
  }

  #reuse(): HttpConnection | undefined {
    for (;;) {
      const last = this.#idle.pop()
      if (last === undefined || last.until > this.#clock.monotonic()) return last?.connection
      last.connection.lose(new Error('idle for too long'))
    }
  }

  async #connectAndAsk(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead> {
    const isEncrypted = this.#origin.protocol === 'https:' || this.#proxy?.origin.startsWith('https:')
    // TLS is loaded on demand, because many servers are local and do not need it.
    const tls = isEncrypted ? (await import('node:tls')).connect : undefined
    if (this.#isClosed) throw new NoResponse(false, new Error('the channel is closed'))
    if (this.#open.size >= this.#maxConnections) throw new NoResponse(false, tooManyConnections())
    return this.#connect(tls).ask(request, receive)
  }

  #connect(tls: typeof TlsConnect | undefined): HttpConnection {
    const connection = new HttpConnection({
      origin: this.#origin,
      tls,
      proxy: this.#proxy,
      connected: () => timer[Symbol.dispose](),
      free: () => this.#keep(connection),
      closed: () => {
        timer[Symbol.dispose]()
        this.#open.delete(connection)
        this.#idle = this.#idle.filter((one) => one.connection !== connection)
        if (connection.answered && !this.connected) this.gaps++
      },
    })
    const timer = this.#clock.after(socketWithinMs, () => connection.lose(new ConnectTimeout(socketWithinMs)))
    this.#open.add(connection)
    return connection
  }

  /** Keeps a connection for the next request, for as long as the server probably does. */
  #keep(connection: HttpConnection): void {
    const lasts = Math.min((connection.keepAliveMs ?? usualIdleMs + marginMs) - marginMs, maxConnectionIdleMs)
    if (this.#isClosed || lasts <= 0) connection.lose(new Error('no longer needed'))
    else {
      this.#idle.push({ connection, until: this.#clock.monotonic() + lasts })
      this.#sweeping ??= this.#clock.after(maxConnectionIdleMs, () => this.#sweep())
    }
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    for (const { connection } of this.#idle.filter(({ until }) => until <= now)) connection.lose(new Error('idle'))
    this.#sweeping = this.#idle.length > 0 ? this.#clock.after(maxConnectionIdleMs, () => this.#sweep()) : undefined
  }
}

const tooManyConnections = (): Error => Object.assign(new Error('too many open connections'), { code: 'EMFILE' })

function environmentProxy(origin: URL): WebProxy | undefined {
  try {
    return proxyFor(origin, process.env)
  } catch (error) {
    throw new ToolwayError('SERVER_UNAVAILABLE', (error as Error).message, { unsent: true })
  }
}
