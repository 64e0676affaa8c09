import type { Socket } from 'node:net'
import type { connect as TlsConnect } from 'node:tls'
import type { WebProxy } from '../../../outbound/proxy.ts'
import { proxyRefused, proxyUnreachable } from '../../../outbound/proxy-failure.ts'
import { type Body, type Head, type HttpRequest, NoAnswer } from '../channel.ts'
import { createAnswerReader } from './answer.ts'
import { BadAnswer } from './bad-answer.ts'
import type { AnswerHead } from './head.ts'
import { proxied, requestPieces } from './request.ts'
import { closedError, openSocket, openTunnel, readyEvent } from './sockets.ts'

/** One connection to a server, for one request at a time. */
export interface Connection {
  /** How long the server lets it be idle, where it says so. */
  readonly keepAliveMs: number | undefined
  /** Whether an answer has begun on it. */
  readonly answered: boolean
  ask(request: HttpRequest, receive: (head: Head) => Body): Promise<Head>
  /** Ends it; whoever waits for an answer is told why. */
  lose(why: Error): void
}

export interface ConnectionOptions {
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
  readonly receive: (head: Head) => Body
  readonly settled: PromiseWithResolvers<Head>
  readonly signal: AbortSignal | undefined
  readonly stop: () => void
  body?: Body
  written: boolean
}

/** What is read at a time. */
const room = 64 * 1024

/** Sockets are read without streams in between: bytes come into a buffer of ours, or right into a long answer. */
export function openConnection({ origin, tls, proxy, ...told }: ConnectionOptions): Connection {
  const tunnelled = proxy !== undefined && tls !== undefined && origin.protocol === 'https:'
  /** A proxy that is handed each request, since many open tunnels to encrypted servers only. */
  const relay = tunnelled ? undefined : proxy
  /** The proxy for as long as we are on the way to it. */
  let ahead = proxy
  const buffer: Buffer = Buffer.allocUnsafeSlow(room)
  let into: Buffer = buffer
  let work: Work | undefined
  let waiting: HttpRequest | undefined
  let connected = false
  let over = false
  let reuse = false
  let keepAliveMs: number | undefined
  let answered = false

  const reader = createAnswerReader({
    head(answer) {
      const mine = work
      if (mine === undefined) throw new BadAnswer('it speaks unasked')
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
      const settled = Promise.withResolvers<Head>()
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

  function write(request: HttpRequest): void {
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
    else left?.settled.reject(new NoAnswer(left.written, ahead ? proxyUnreachable(ahead, origin, why) : why))
  }
}

function headOf({ status, headers, repeated }: AnswerHead, relay: WebProxy | undefined, abort: () => void): Head {
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
