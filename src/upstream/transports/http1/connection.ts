import { connect, type OnReadOpts, type Socket } from 'node:net'
import type { connect as TlsConnect } from 'node:tls'
import type { WebProxy } from '../../../outbound/proxy.ts'
import { proxyRefused, proxyUnreachable } from '../../../outbound/proxy-failure.ts'
import { type BodyReader, type ChannelRequest, NoResponse, type ResponseHead } from '../http-channel.ts'
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
  /** How long the server lets it be idle, where it says so. */
  readonly keepAliveMs: number | undefined
  /** Whether an answer has begun on it. */
  readonly answered: boolean
  ask(request: ChannelRequest, receive: (head: ResponseHead) => BodyReader): Promise<ResponseHead>
  /** Ends it; whoever waits for an answer is told why. */
  lose(why: Error): void
}

export interface HttpConnectionOptions {
  readonly origin: URL
  /** Where a connection is to be encrypted. */
  readonly tls: typeof TlsConnect | undefined
  /** Whoever has to be asked for the way there. */
  readonly proxy: WebProxy | undefined
  connected(): void
  /** It has done its work and can be used again. */
  free(): void
  /** It cannot be used any more. */
  closed(): void
}

/** One request, and whoever reads its answer. */
interface Work {
  readonly receive: (head: ResponseHead) => BodyReader
  readonly settled: PromiseWithResolvers<ResponseHead>
  readonly signal: AbortSignal | undefined
  readonly stop: () => void
  body?: BodyReader
  written: boolean
}

/** What is read at a time. */
const room = 64 * 1024

/** Sockets are read without streams in between: bytes come into a buffer of ours, or right into a long answer. */
export function openHttpConnection({ origin, tls, proxy, ...told }: HttpConnectionOptions): HttpConnection {
  const tunnelled = proxy !== undefined && tls !== undefined && origin.protocol === 'https:'
  /** A proxy that is handed each request, since many open tunnels to encrypted servers only. */
  const relay = tunnelled ? undefined : proxy
  /** The proxy for as long as we are on the way to it. */
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
      if (mine === undefined) throw new MalformedResponse('it speaks unasked')
      if (relay && answer.status === 407) {
        mine.written = false
        throw proxyRefused(relay, origin, 407)
      }
      answered = true
      reuse = answer.reuse
      keepAliveMs = answer.keepAliveMs
      const head = headOf(answer, relay, () => {
        if (work === mine) lose(new Error('nobody reads the answer any more'))
      })
      mine.body = mine.receive(head)
      mine.settled.resolve(head)
      return mine.body.whole ?? 0
    },
    data: (chunk) => work?.body?.data(chunk),
    end() {
      const done = finish()
      if (!reuse) lose(new Error('it was used once'))
      done?.body?.end()
      if (!over) told.free()
    },
  })

  const onread = {
    buffer: () => {
      into = reader.place ?? buffer
      return into
    },
    callback(length: number) {
      if (over) return false
      hear(into === buffer ? buffer.subarray(0, length) : undefined, length)
      return true
    },
  }
  const next = relay ? new URL(relay.origin) : origin
  let socket: Socket
  if (tunnelled) {
    const opened = (tunnel: Socket) => {
      ahead = undefined
      // What is encrypted within another connection can only be read as a stream.
      take(openSocket(origin, tls, { socket: tunnel }))
      socket.on('data', (bytes) => hear(bytes))
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
        lose(new Error('nobody waits for the answer any more'))
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
      told.connected()
      if (waiting) write(waiting)
      waiting = undefined
    })
    // What is left to be heard of a socket that nobody needs any more goes nowhere.
    socket.on('error', lose)
    socket.once('end', () => {
      // There are answers that end with their connection.
      reader.ended()
      lose(closedError())
    })
    socket.once('close', () => lose(closedError()))
  }

  /** Bytes have come, or so many of them have been put into their place. */
  function hear(bytes: Buffer | undefined, placed = 0): void {
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

  /** The request at hand is over, whichever way. */
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
    told.closed()
    if (left?.body) left.body.lost(why)
    else left?.settled.reject(new NoResponse(left.written, ahead ? proxyUnreachable(ahead, origin, why) : why))
  }
}

function headOf(
  { status, headers, repeated }: ParsedHead,
  relay: WebProxy | undefined,
  abort: () => void,
): ResponseHead {
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
    abort,
  }
}

/** Headers are prepared once per line, and so is their text. */
const prepared = new WeakMap<Readonly<Record<string, string>>, { readonly to: string; readonly text: string }>()

/** Smaller bodies are copied behind their heads, so that both leave in one write. */
const small = 64 * 1024

/** A request as it is sent: in one piece, or the head and a large body. Throws where a header could be read as two. */
function requestPieces(host: string, { method, path, headers, body }: ChannelRequest): readonly Buffer[] {
  const to = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  let known = prepared.get(headers)
  if (known?.to !== to) {
    known = { to, text: to + headerLines(headers) }
    prepared.set(headers, known)
  }
  const length = body?.length ?? 0
  // In capitals, since there are proxies that add a second one where they do not know it by its small letters.
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

/** A request as a proxy wants it that passes it on: with the whole address, and the credential for the proxy. */
function proxied(request: ChannelRequest, { origin }: URL, { authorization }: WebProxy): ChannelRequest {
  const headers = authorization ? { ...request.headers, 'proxy-authorization': authorization } : request.headers
  return { ...request, path: origin + request.path, headers }
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  let text = ''
  for (const name of Object.keys(headers)) {
    const value = headers[name] as string
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new TypeError(`The header ${JSON.stringify(name)} cannot be sent: take out line breaks and odd characters.`)
    }
    text += `${name}: ${value}\r\n`
  }
  return text
}

interface SocketOptions {
  /** What reads it, where it is not read as a stream. */
  readonly onread?: OnReadOpts
  /** A connection that leads there already. */
  readonly socket?: Socket
}

/** Opens a connection to an origin, encrypted where its address says so. */
function openSocket(to: URL, tls: typeof TlsConnect | undefined, options: SocketOptions): Socket {
  const host = hostOf(to)
  const port = portOf(to)
  if (tls === undefined || to.protocol !== 'https:') return connect({ host, port, ...options })
  const servername = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
  // The types do not know that it can be read this way, too.
  return tls({ host, port, ...servername, ALPNProtocols: ['http/1.1'], ...(options as object) })
}

/** When a connection can be written to. */
const readyEvent = ({ protocol }: URL): 'secureConnect' | 'connect' =>
  protocol === 'https:' ? 'secureConnect' : 'connect'

/** No proxy says more than this to a request for a tunnel. */

/** Asks a proxy to lead us to an origin. `opened` gets the connection once it does; `lost` hears why it does not. */
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
        if (said.length > maxHead) throw new MalformedResponse('its head is too long')
        return
      }
      const { status } = readHead(said.toString('latin1', 0, length))
      if (status < 200 || status > 299) throw proxyRefused(proxy, to, status)
      // Whoever is at the other end waits for us to speak first.
      if (said.length > length) throw new MalformedResponse('it speaks unasked')
      // From here on whoever takes it over hears of its end, after all that came through it.
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

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)
