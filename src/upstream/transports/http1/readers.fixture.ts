import { request } from 'node:http'
import { Duplex } from 'node:stream'
import { Client, type Dispatcher } from 'undici'
import { type ParsedHead, ResponseReader } from './response-reader.ts'

/**
 * A response as an HTTP reader understands it. Header names are in lower case and in order; each character stands for
 * one byte.
 */
export interface Understood {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

/** What a reader makes of the response to a POST that arrives in these pieces, with nothing after them. */
export type Reading = Understood | { readonly refused: string }

/** Removes white space after a value, which is not part of it; undici keeps it. */
const lineOf = (name: string, value: string): string => `${name.toLowerCase()}: ${value.replace(/[ \t]+$/, '')}`

/** Our own reader, together with what it has understood so far. */
function ourReader() {
  let head: ParsedHead | undefined
  let body = ''
  let done: Understood | undefined
  const reader = new ResponseReader({
    head(told) {
      head ??= told
      return 0
    },
    data(chunk) {
      if (!done) body += chunk.toString('latin1')
    },
    end() {
      const { status, headers, repeated } = head as ParsedHead
      const lines = [...headers, ...repeated].map(([name, value]) => lineOf(name, value))
      done ??= { status, headers: lines.sort(), body }
    },
  })
  return { reader, done: () => done }
}

/** Reads the response with our reader, in these pieces. */
export function readByUs(pieces: readonly Buffer[]): Reading {
  const { reader, done } = ourReader()
  try {
    for (const piece of pieces) reader.push(Buffer.from(piece))
    reader.ended()
  } catch (error) {
    return done() ?? { refused: (error as Error).message }
  }
  return done() ?? { refused: 'cut off' }
}

/** Reads the response with our reader byte by byte, which also shows how many bytes follow the response. */
export function readByteByByte(pieces: readonly Buffer[]): { readonly reading: Reading; readonly left: number } {
  const { reader, done } = ourReader()
  const bytes = Buffer.concat(pieces)
  for (let at = 0; at < bytes.length; at++) {
    try {
      reader.push(Buffer.from(bytes.subarray(at, at + 1)))
    } catch (error) {
      return { reading: { refused: (error as Error).message }, left: bytes.length - at }
    }
    const reading = done()
    if (reading) return { reading, left: bytes.length - at - 1 }
  }
  reader.ended()
  return { reading: done() ?? { refused: 'cut off' }, left: 0 }
}

/**
 * The other end of a connection. Once it has received a request, it sends the pieces, one in each turn of the event
 * loop.
 */
class Wire extends Duplex {
  readonly #pieces: Buffer[]
  #asked = false

  constructor(pieces: readonly Buffer[]) {
    super()
    this.#pieces = [...pieces]
  }

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, written: () => void): void {
    if (!this.#asked) setImmediate(() => this.#send())
    this.#asked = true
    written()
  }

  #send(): void {
    if (this.destroyed) return
    const piece = this.#pieces.shift()
    this.push(piece ?? null)
    if (piece) setImmediate(() => this.#send())
  }

  // Methods of a socket that clients call.
  ref = () => this
  unref = () => this
  setNoDelay = () => this
  setKeepAlive = () => this
  setTimeout = () => this
}

export function readByNode(pieces: readonly Buffer[]): Promise<Reading> {
  const wire = new Wire(pieces)
  const { promise, resolve } = Promise.withResolvers<Reading>()
  const refused = (error?: Error) => resolve({ refused: error?.message ?? 'closed' })
  const asked = request({
    method: 'POST',
    host: 'localhost',
    createConnection: () => wire,
    headers: { 'content-length': 0 },
  })
  asked
    .on('error', refused)
    .on('close', refused)
    .on('upgrade', () => refused())
  asked.on('response', (answer) => {
    let body = ''
    answer.setEncoding('latin1').on('data', (text: string) => {
      body += text
    })
    answer.on('error', refused)
    answer.on('end', () => {
      const { statusCode: status = 0, rawHeaders, complete } = answer
      const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [lineOf(name, rawHeaders[at + 1] ?? '')] : []))
      if (complete) resolve({ status, headers: headers.sort(), body })
      else refused()
    })
  })
  asked.end()
  return promise.finally(() => wire.destroy())
}

export async function readByUndici(pieces: readonly Buffer[]): Promise<Reading> {
  const wire = new Wire(pieces)
  const connect = (_: unknown, connected: (error: null, socket: Duplex) => void) => {
    queueMicrotask(() => connected(null, wire))
    return wire
  }
  const client = new Client('http://localhost', { connect: connect as never, bodyTimeout: 0, headersTimeout: 0 })
  const { promise, resolve } = Promise.withResolvers<Reading>()
  let understood: { status: number; headers: string[]; body: string } | undefined
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {},
    onResponseStart(controller, status) {
      if (status < 200) return
      const raw = (controller as unknown as { rawHeaders: Buffer[] }).rawHeaders.map((bytes) =>
        Buffer.from(bytes).toString('latin1'),
      )
      const headers = raw.flatMap((name, at) => (at % 2 === 0 ? [lineOf(name, raw[at + 1] ?? '')] : []))
      understood = { status, headers: headers.sort(), body: '' }
    },
    onResponseData(_, chunk) {
      if (understood) understood.body += chunk.toString('latin1')
    },
    onResponseEnd: () => resolve(understood ?? { refused: 'no head' }),
    onResponseError: (_, error) => resolve({ refused: error.message }),
    onRequestUpgrade: () => resolve({ refused: 'upgrade' }),
  }
  client.dispatch({ method: 'POST', path: '/' }, handler)
  try {
    return await promise
  } finally {
    wire.destroy()
    await client.destroy().catch(() => {})
  }
}
