import type { connect as TlsConnect } from 'node:tls'
import type { Clock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { fixedLimits } from '../../../core/limits/fixed-limits.ts'
import { proxyFor, type WebProxy } from '../../../egress/proxy.ts'
import { ConnectTimeout, type HttpChannel, NoResponse, type ReceiveBody, receiveDecoded } from '../http-channel.ts'
import { type HttpConnection, openHttpConnection } from './connection.ts'

const connectMs = 10_000

// If the server closes a connection while we write to it, the outcome of the request is unknown. So a connection is not
// reused after a long idle time, or shortly before the server's own keep-alive timeout.
const usualIdleMs = 4_000
const maxIdleMs = 15_000
const marginMs = 2_000

export interface ChannelOptions {
  /** The maximum number of open connections, so that a slow server cannot exhaust the file descriptors. */
  readonly maxConnections?: number
  readonly proxy?: WebProxy | undefined
}

/** Creates a channel with one connection per concurrent request. Throws if the environment names an unusable proxy. */
export function createHttpChannel(address: string, clock: Clock, options: ChannelOptions = {}): HttpChannel {
  const origin = new URL(address)
  const { maxConnections = fixedLimits.serverConnections.value, proxy = environmentProxy(origin) } = options
  const encrypted = origin.protocol === 'https:' || proxy?.origin.startsWith('https:')
  const open = new Set<HttpConnection>()
  /** Idle connections, and until when each may be reused. The most recently used one is last, and reused first. */
  let idle: { readonly connection: HttpConnection; readonly until: number }[] = []
  let sweeping: Disposable | undefined
  let closed = false
  let gaps = 0

  const reuse = (): HttpConnection | undefined => {
    for (;;) {
      const last = idle.pop()
      if (last === undefined || last.until > clock.monotonic()) return last?.connection
      last.connection.lose(new Error('idle for too long'))
    }
  }

  const connect = (tls: typeof TlsConnect | undefined): HttpConnection => {
    const connection = openHttpConnection({
      origin,
      tls,
      proxy,
      connected: () => timer[Symbol.dispose](),
      free() {
        const lasts = Math.min((connection.keepAliveMs ?? usualIdleMs + marginMs) - marginMs, maxIdleMs)
        if (closed || lasts <= 0) return connection.lose(new Error('no longer needed'))
        idle.push({ connection, until: clock.monotonic() + lasts })
        sweeping ??= clock.after(maxIdleMs, sweep)
      },
      closed() {
        timer[Symbol.dispose]()
        open.delete(connection)
        idle = idle.filter((one) => one.connection !== connection)
        if (connection.answered && !isConnected()) gaps++
      },
    })
    const timer = clock.after(connectMs, () => connection.lose(new ConnectTimeout(connectMs)))
    open.add(connection)
    return connection
  }

  const sweep = () => {
    const now = clock.monotonic()
    for (const { connection } of idle.filter(({ until }) => until <= now)) connection.lose(new Error('idle'))
    sweeping = idle.length > 0 ? clock.after(maxIdleMs, sweep) : undefined
  }

  const isConnected = (): boolean => {
    for (const { answered } of open) if (answered) return true
    return false
  }

  return {
    get connected() {
      return isConnected()
    },
    get gaps() {
      return gaps
    },
    async request(request, receiveBody) {
      request.signal?.throwIfAborted()
      const receive: ReceiveBody = (head) => receiveDecoded(head, receiveBody)
      const known = reuse()
      if (known) return known.ask(request, receive)
      // TLS is loaded on demand, because many servers are local and do not need it.
      const tls = encrypted ? (await import('node:tls')).connect : undefined
      if (closed) throw new NoResponse(false, new Error('the channel is closed'))
      if (open.size >= maxConnections) throw new NoResponse(false, tooMany())
      return connect(tls).ask(request, receive)
    },
    async [Symbol.asyncDispose]() {
      closed = true
      sweeping?.[Symbol.dispose]()
      for (const connection of open) connection.lose(new Error('the channel is closed'))
    },
  }
}

const tooMany = (): Error => Object.assign(new Error('too many open connections'), { code: 'EMFILE' })

function environmentProxy(origin: URL): WebProxy | undefined {
  try {
    return proxyFor(origin, process.env)
  } catch (error) {
    throw new ToolwayError('SERVER_UNAVAILABLE', (error as Error).message, { unsent: true })
  }
}
