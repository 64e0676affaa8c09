import { connect, type OnReadOpts, type Socket } from 'node:net'
import type { connect as TlsConnect } from 'node:tls'
import { proxyRefused, proxyUnreachable, type WebProxy } from '../../../egress/proxy.ts'
import {
  type ChannelRequest,
  NoResponse,
  type ReceiveBody,
  type ResponseBodyReader,
  type ResponseHead,
} from '../http-channel.ts'
import {
  createResponseReader,
  headLength,
  MalformedResponse,
  maxHead,
  type ParsedHead,
  readHead,
  refuseBareLf,
} from './response-reader.ts'

/** One connection to a server, for one request at a time. */
export interface HttpConnection {
  readonly keepAliveMs: number | undefined
  readonly answered: boolean
  ask(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead>
  /** Closes the connection. A pending request fails with this error. */
  lose(why: Error): void
}

export interface HttpConnectionOptions {
  readonly origin: URL
  /** The function that opens TLS connections; set if any part of the connection is encrypted. */
  readonly tls: typeof TlsConnect | undefined
  readonly proxy: WebProxy | undefined
  connected(): void
  /** Called when the response is complete, so that the connection can be reused. */
  free(): void
  closed(): void
}

interface Work {
  readonly receive: ReceiveBody
  readonly settled: PromiseWithResolvers<ResponseHead>
  readonly signal: AbortSignal | undefined
  readonly stop: () => void
  body?: ResponseBodyReader
  written: boolean
}

const room = 64 * 1024

/** Opens a connection. Reads the socket without a Node stream, into our buffer or directly into a long body. */
export function openHttpConnection({ origin, tls, proxy, ...events }: HttpConnectionOptions): HttpConnection {
  const tunnelled = proxy !== undefined && tls !== undefined && origin.protocol === 'https:'
  /** The proxy, if requests are forwarded instead of tunnelled: many proxies tunnel only to encrypted servers. */
  const relay = tunnelled ? undefined : proxy
  /** The proxy, until the connection through it is established; then undefined. */
  let ahead = proxy
  const buffer: Buffer = Buffer.allocUnsafeSlow(room)
  let into: Buffer = buffer
  let work: Work | undefined
  let waiting: ChannelRequest | undefined
  let connected = false
  let over = false
  let reuse = false
  let keepAliveMs: number | undefined
  let answered = false

  const reader = createResponseReader({
    head(answer) {
      const mine = work
      if (mine === undefined) throw new MalformedResponse('data without a request')
      if (relay && answer.status === 407) {
        mine.written = false
        throw proxyRefused(relay, origin, 407)
      }
      answered = true
      reuse = answer.reuse
      keepAliveMs = answer.keepAliveMs
      const head = headOf(answer, relay, {
        abort: () => {
          if (work === mine) lose(new Error('response aborted'))
        },
        pause: () => {
          if (work === mine) socket.pause()
        },
        resume: () => {
          if (!over) socket.resume()
        },
      })
      mine.body = mine.receive(head)
      mine.settled.resolve(head)
      return mine.body.whole ?? 0
    },
    data: (chunk) => work?.body?.data(chunk),
    end() {
      const done = finish()
      if (!reuse) lose(new Error('not reusable'))
      done?.body?.end()
      if (!over) events.free()
    },
  })

  const onread = {
    buffer: () => {
      into = reader.place ?? buffer
      return into
    },
    callback(length: number) {
      if (over) return false
      received(into === buffer ? buffer.subarray(0, length) : undefined, length)
      return true
    },
  }
  const next = relay ? new URL(relay.origin) : origin
  let socket: Socket
  if (tunnelled) {
    const opened = (tunnel: Socket) => {
      ahead = undefined
      // Read this socket as a stream, because TLS inside another connection does not support `onread`.
      take(openSocket(origin, tls, { socket: tunnel }))
      socket.on('data', (bytes) => received(bytes))
    }
    socket = openTunnel({ proxy, to: origin, tls }, { opened, lost: lose })
  } else take(openSocket(next, tls, { onread }))

  return {
    get keepAliveMs() {
      return keepAliveMs
    },
    get answered() {
      return answered
    },
    ask(request, receive) {
      const { signal } = request
      const settled = Promise.withResolvers<ResponseHead>()
      const stop = () => {
        settled.reject(signal?.reason)
        lose(new Error('request aborted'))
      }
      signal?.addEventListener('abort', stop, { once: true })
      work = { receive, settled, signal, stop, written: false }
      if (connected) write(request)
      else waiting = request
      return settled.promise
    },
    lose,
  }

  function take(opened: Socket): void {
    socket = opened
    socket.setNoDelay(true)
    socket.once(readyEvent(next), () => {
      connected = true
      ahead = undefined
      events.connected()
      if (waiting) write(waiting)
      waiting = undefined
    })
    // `lose` ignores errors from a socket that is already closed.
    socket.on('error', lose)
    socket.once('end', () => {
      // The response may be complete now: some responses end with their connection.
      reader.ended()
      lose(closedError())
    })
    socket.once('close', () => lose(closedError()))
  }

  /** Handles received bytes, or bytes that were read directly into a body. */
  function received(bytes: Buffer | undefined, placed = 0): void {
    if (over) return
    try {
      if (bytes) reader.push(bytes)
      else reader.placed(placed)
    } catch (error) {
      lose(error as Error)
    }
  }

  function write(request: ChannelRequest): void {
    try {
      const pieces = requestPieces(origin.host, relay ? proxied(request, origin, relay) : request)
      if (work) work.written = true
      if (pieces.length > 1) socket.cork()
      for (const piece of pieces) socket.write(piece)
      if (pieces.length > 1) socket.uncork()
    } catch (error) {
      lose(error as Error)
    }
  }

  /** Ends the current request, whether it succeeded or failed. */
  function finish(): Work | undefined {
    const done = work
    work = undefined
    done?.signal?.removeEventListener('abort', done.stop)
    return done
  }

  function lose(why: Error): void {
    if (over) return
    over = true
    const left = finish()
    socket.destroy()
    events.closed()
    if (left?.body) left.body.lost(why)
    else left?.settled.reject(new NoResponse(left.written, ahead ? proxyUnreachable(ahead, origin, why) : why))
  }
}

type ResponseControl = Pick<ResponseHead, 'abort' | 'pause' | 'resume'>

function headOf(parsed: ParsedHead, relay: WebProxy | undefined, control: ResponseControl): ResponseHead {
  const { status, headers, repeated } = parsed
  const type = headers.get('content-type') ?? ''
  const end = type.indexOf(';')
  return {
    status,
    relay: relay?.origin,
    type: (end === -1 ? type : type.slice(0, end)).trim().toLowerCase(),
    header: (name) => headers.get(name),
    all(name) {
      const first = headers.get(name)
      const others = repeated.filter(([other]) => other === name).map(([, value]) => value)
      return first === undefined ? [] : [first, ...others]
    },
    ...control,
  }
}

/** The text of prepared headers. A transport prepares its headers once, so their text is built only once too. */
const prepared = new WeakMap<Readonly<Record<string, string>>, { readonly to: string; readonly text: string }>()

/** Bodies up to this size are copied after the head, so that both are sent in one write. */
const small = 64 * 1024

/** The bytes of a request: one piece, or the head and a large body. Throws if a header could be read as two. */
function requestPieces(host: string, { method, path, headers, body }: ChannelRequest): readonly Buffer[] {
  const to = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  let known = prepared.get(headers)
  if (known?.to !== to) {
    known = { to, text: to + headerLines(headers) }
    prepared.set(headers, known)
  }
  const length = body?.length ?? 0
  // Capitalize the name, because some proxies add a second Content-Length if the name is in lower case.
  const head =
    body === undefined && method !== 'POST' ? `${known.text}\r\n` : `${known.text}Content-Length: ${length}\r\n\r\n`
  if (body === undefined || length > small) {
    const bytes = Buffer.from(head, 'latin1')
    return body === undefined ? [bytes] : [bytes, body]
  }
  const whole = Buffer.allocUnsafe(head.length + length)
  whole.write(head, 'latin1')
  whole.set(body, head.length)
  return [whole]
}

/** Adapts a request for a forwarding proxy: uses an absolute URL, and adds the proxy credential. */
function proxied(request: ChannelRequest, { origin }: URL, { authorization }: WebProxy): ChannelRequest {
  const headers = authorization ? { ...request.headers, 'proxy-authorization': authorization } : request.headers
  return { ...request, path: origin + request.path, headers }
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  let text = ''
  for (const name of Object.keys(headers)) {
    const value = headers[name] as string
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      const advice = 'remove line breaks and special characters'
      throw new TypeError(`The header ${JSON.stringify(name)} cannot be sent: ${advice}.`)
    }
    text += `${name}: ${value}\r\n`
  }
  return text
}

/** How to open a socket: `onread` reads it without a stream; `socket` is an established tunnel to use. */
type SocketOptions = { readonly onread: OnReadOpts } | { readonly socket?: Socket }

function openSocket(to: URL, tls: typeof TlsConnect | undefined, options: SocketOptions): Socket {
  const host = to.hostname.replace(/^\[|\]$/g, '')
  const port = portOf(to)
  if (tls === undefined || to.protocol !== 'https:') return connect({ host, port, ...options })
  const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
  // The cast is needed because the types lack some options that Node supports.
  return tls({ host, port, ...servername, ALPNProtocols: ['http/1.1'], ...(options as object) })
}

const readyEvent = ({ protocol }: URL): 'secureConnect' | 'connect' =>
  protocol === 'https:' ? 'secureConnect' : 'connect'

/** Asks a proxy for a tunnel. Calls `opened` with the socket, or `lost` with the reason. */
function openTunnel(
  { proxy, to, tls }: { readonly proxy: WebProxy; readonly to: URL; readonly tls: typeof TlsConnect },
  { opened, lost }: { opened(socket: Socket): void; lost(why: Error): void },
): Socket {
  const via = new URL(proxy.origin)
  const socket = openSocket(via, tls, {})
  const target = `${to.hostname}:${portOf(to)}`
  const authorization = proxy.authorization === undefined ? '' : `proxy-authorization: ${proxy.authorization}\r\n`
  const closed = () => lost(closedError())
  let said: Buffer = Buffer.alloc(0)
  const read = (chunk: Buffer) => {
    said = Buffer.concat([said, chunk])
    try {
      const length = headLength(said, 0)
      if (length === 0) {
        refuseBareLf(said, 0)
        if (said.length > maxHead) throw new MalformedResponse('head too long')
        return
      }
      const { status } = readHead(said.toString('latin1', 0, length))
      if (status < 200 || status > 299) throw proxyRefused(proxy, to, status)
      // The proxy must not have sent any further bytes, because the server waits for our first bytes.
      if (said.length > length) throw new MalformedResponse('data without a request')
      // Remove our listeners: from now on, the new owner of the socket handles its end.
      socket.off('data', read).off('close', closed).pause()
      opened(socket)
    } catch (error) {
      lost(error as Error)
    }
  }
  socket.on('data', read).on('error', lost).on('close', closed)
  socket.once(readyEvent(via), () => {
    socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${authorization}\r\n`, 'latin1')
  })
  return socket
}

const closedError = (): Error => Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)
