import { connect, type OnReadOpts, type Socket } from 'node:net'
import type { connect as TlsConnect } from 'node:tls'
import { proxyRefused, proxyUnreachable, type WebProxy } from '../../../egress/proxy.ts'
import {
  type BodyControl,
  type ChannelRequest,
  NoResponse,
  type ReceiveBody,
  type ResponseBodyReader,
  ResponseHead,
  receiveDecoded,
} from '../http-channel.ts'
import {
  headLength,
  MalformedResponse,
  maxHeadBytes,
  type ParsedHead,
  parseHead,
  type ResponseListener,
  ResponseReader,
  refuseBareLf,
} from './response-reader.ts'

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

const room = 64 * 1024

class PendingHttpRequest implements BodyControl {
  readonly receive: ReceiveBody
  readonly settled = Promise.withResolvers<ResponseHead>()
  readonly signal: AbortSignal | undefined
  body: ResponseBodyReader | undefined
  isWritten = false
  readonly #connection: HttpConnection

  constructor(connection: HttpConnection, receive: ReceiveBody, signal: AbortSignal | undefined) {
    this.#connection = connection
    this.receive = receive
    this.signal = signal
  }

  /** Called when the signal aborts. */
  handleEvent(): void {
    this.settled.reject(this.signal?.reason)
    this.#connection.lose(new Error('request aborted'))
  }

  abort(): void {
    if (this.#connection.isFor(this)) this.#connection.lose(new Error('response aborted'))
  }

  pause(): void {
    if (this.#connection.isFor(this)) this.#connection.pause()
  }

  resume(): void {
    this.#connection.resume()
  }
}

/**
 * One connection to a server, for one request at a time. Reads the socket without a Node stream, into our buffer or
 * directly into a long body.
 */
export class HttpConnection implements ResponseListener {
  keepAliveMs: number | undefined
  /** Whether the server has responded on this connection. */
  answered = false
  readonly #options: HttpConnectionOptions
  /** The proxy, if requests are forwarded instead of tunnelled: many proxies tunnel only to encrypted servers. */
  readonly #relay: WebProxy | undefined
  /** The proxy, until the connection through it is established; then undefined. */
  #ahead: WebProxy | undefined
  readonly #reader = new ResponseReader(this)
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(room)
  #into: Buffer = this.#buffer
  #socket: Socket
  #current: PendingHttpRequest | undefined
  #waiting: ChannelRequest | undefined
  #isConnected = false
  #isOver = false
  #isReusable = false

  constructor(options: HttpConnectionOptions) {
    const { origin, tls, proxy } = options
    const isTunnelled = proxy !== undefined && tls !== undefined && origin.protocol === 'https:'
    this.#options = options
    this.#relay = isTunnelled ? undefined : proxy
    this.#ahead = proxy
    if (isTunnelled) {
      const opened = (tunnel: Socket) => {
        this.#ahead = undefined
        this.#socket = openSocket(origin, tls, { socket: tunnel })
        this.#listen(origin)
        // Read this socket as a stream, because TLS inside another connection does not support `onread`.
        this.#socket.on('data', (bytes) => this.#onBytes(bytes))
      }
      this.#socket = openTunnel({ proxy, to: origin, tls }, { opened, lost: (why) => this.lose(why) })
    } else {
      const next = this.#relay ? new URL(this.#relay.origin) : origin
      this.#socket = openSocket(next, tls, { onread: this.#onread })
      this.#listen(next)
    }
  }

  ask(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead> {
    const pending = new PendingHttpRequest(this, receive, request.signal)
    request.signal?.addEventListener('abort', pending, { once: true })
    this.#current = pending
    if (this.#isConnected) this.#write(request)
    else this.#waiting = request
    return pending.settled.promise
  }

  /** Closes the connection. A pending request fails with this error. */
  lose(why: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    const left = this.#finish()
    this.#socket.destroy()
    this.#options.closed()
    if (left?.body) left.body.lost(why)
    else if (left) {
      const cause = this.#ahead ? proxyUnreachable(this.#ahead, this.#options.origin, why) : why
      left.settled.reject(new NoResponse(left.isWritten, cause))
    }
  }

  isFor(request: PendingHttpRequest): boolean {
    return this.#current === request
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    if (!this.#isOver) this.#socket.resume()
  }

  head(answer: ParsedHead): number {
    const pending = this.#current
    if (pending === undefined) throw new MalformedResponse('data without a request')
    if (this.#relay && answer.status === 407) {
      pending.isWritten = false
      throw proxyRefused(this.#relay, this.#options.origin, 407)
    }
    this.answered = true
    this.#isReusable = answer.reuse
    this.keepAliveMs = answer.keepAliveMs
    const head = new ResponseHead(answer, pending, this.#relay?.origin)
    pending.body = head.encoding === '' ? pending.receive(head) : receiveDecoded(head, pending.receive)
    pending.settled.resolve(head)
    return pending.body.whole ?? 0
  }

  data(chunk: Buffer): void {
    this.#current?.body?.data(chunk)
  }

  end(): void {
    const done = this.#finish()
    if (!this.#isReusable) this.lose(new Error('not reusable'))
    done?.body?.end()
    if (!this.#isOver) this.#options.free()
  }

  readonly #onread: OnReadOpts = {
    buffer: () => {
      this.#into = this.#reader.place ?? this.#buffer
      return this.#into
    },
    callback: (length: number) => {
      if (this.#isOver) return false
      this.#onBytes(this.#into === this.#buffer ? this.#buffer.subarray(0, length) : undefined, length)
      return true
    },
  }

  #listen(to: URL): void {
    this.#socket.setNoDelay(true)
    this.#socket.once(readyEvent(to), () => {
      this.#isConnected = true
      this.#ahead = undefined
      this.#options.connected()
      if (this.#waiting) this.#write(this.#waiting)
      this.#waiting = undefined
    })
    // `lose` ignores errors from a socket that is already closed.
    this.#socket.on('error', (error) => this.lose(error))
    this.#socket.once('end', () => {
      // The response may be complete now: some responses end with their connection.
      this.#reader.ended()
      this.lose(closedError())
    })
    this.#socket.once('close', () => this.lose(closedError()))
  }

  /** Handles received bytes, or bytes that were read directly into a body. */
  #onBytes(bytes: Buffer | undefined, placed = 0): void {
    if (this.#isOver) return
    try {
      if (bytes) this.#reader.push(bytes)
      else this.#reader.placed(placed)
    } catch (error) {
      this.lose(error as Error)
    }
  }

  #write(request: ChannelRequest): void {
    const { origin } = this.#options
    const socket = this.#socket
    try {
      const pieces = requestPieces(origin.host, this.#relay ? relayedRequest(request, origin, this.#relay) : request)
      if (this.#current) this.#current.isWritten = true
      if (pieces.length > 1) socket.cork()
      for (const piece of pieces) socket.write(piece)
      if (pieces.length > 1) socket.uncork()
    } catch (error) {
      this.lose(error as Error)
    }
  }

  /** Ends the current request, whether it succeeded or failed. */
  #finish(): PendingHttpRequest | undefined {
    const done = this.#current
    this.#current = undefined
    done?.signal?.removeEventListener('abort', done)
    return done
  }
}

/** The text of prepared headers. A transport prepares its headers once, so their text is built only once too. */
const preparedHeaders = new WeakMap<Readonly<Record<string, string>>, { readonly to: string; readonly text: string }>()

/** Bodies up to this size are copied after the head, so that both are sent in one write. */
const maxCopiedBody = 64 * 1024

/** The bytes of a request: one piece, or the head and a large body. Throws if a header could be read as two. */
function requestPieces(host: string, { method, path, headers, body }: ChannelRequest): readonly Buffer[] {
  const to = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  let known = preparedHeaders.get(headers)
  if (known?.to !== to) {
    known = { to, text: to + headerLines(headers) }
    preparedHeaders.set(headers, known)
  }
  const length = body?.length ?? 0
  // Capitalize the name, because some proxies add a second Content-Length if the name is in lower case.
  const head =
    body === undefined && method !== 'POST' ? `${known.text}\r\n` : `${known.text}Content-Length: ${length}\r\n\r\n`
  if (body === undefined || length > maxCopiedBody) {
    const bytes = Buffer.from(head, 'latin1')
    return body === undefined ? [bytes] : [bytes, body]
  }
  const whole = Buffer.allocUnsafe(head.length + length)
  whole.write(head, 'latin1')
  whole.set(body, head.length)
  return [whole]
}

/** Adapts a request for a forwarding proxy: uses an absolute URL, and adds the proxy credential. */
function relayedRequest(request: ChannelRequest, { origin }: URL, { authorization }: WebProxy): ChannelRequest {
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
        if (said.length > maxHeadBytes) throw new MalformedResponse('head too long')
        return
      }
      const { status } = parseHead(said.toString('latin1', 0, length))
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
