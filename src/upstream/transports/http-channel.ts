import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import type { Clock } from '../../core/clock.ts'
import { basicAuthOf } from '../../lib/url.ts'
import { type ByteCollector, createByteCollector } from '../../wire/bytes.ts'
import { maxMessage } from '../../wire/message.ts'
import type { ParsedHead } from './http1/response-reader.ts'

/** HTTP to one origin. Responses are delivered as they arrive, without Node streams in between. */
export interface HttpChannel {
  /**
   * Sends a request. Resolves with the response head, after `receive` has chosen a reader for the body. Rejects with
   * `NoResponse`, or with the signal's reason.
   */
  request(request: ChannelRequest, receive: ReceiveBody): Promise<ResponseHead>
}

export type ReceiveBody = (head: ResponseHead) => ResponseBodyReader

export interface ChannelRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: AbortSignal | undefined
}

/** How the reading of a body is controlled. */
export interface BodyControl {
  abort(): void
  /** Stops reading the body, until `resume`. */
  pause(): void
  resume(): void
}

export class ResponseHead implements BodyControl {
  readonly status: number
  readonly type: string
  /** The forwarding proxy, if any, which may have created the response itself. */
  readonly relay: string | undefined
  /** The encoding of the body, such as `gzip`; empty if it is not encoded. */
  readonly encoding: string
  readonly #parsed: Pick<ParsedHead, 'status' | 'headers' | 'repeated'>
  readonly #control: BodyControl

  constructor(parsed: Pick<ParsedHead, 'status' | 'headers' | 'repeated'>, control: BodyControl, relay?: string) {
    const type = parsed.headers.get('content-type') ?? ''
    const end = type.indexOf(';')
    this.#parsed = parsed
    this.#control = control
    this.status = parsed.status
    this.type = (end === -1 ? type : type.slice(0, end)).trim().toLowerCase()
    this.relay = relay
    const encoding = parsed.headers.has('content-encoding') ? this.all('content-encoding').join(', ') : ''
    this.encoding = encoding
      .trim()
      .toLowerCase()
      .replace(/^identity$/, '')
  }

  /** Whether the body is in an encoding that Toolway cannot decode. */
  get hasUnknownEncoding(): boolean {
    return this.encoding !== '' && !Object.hasOwn(contentDecoders, this.encoding)
  }

  header(name: string): string | undefined {
    return this.#parsed.headers.get(name)
  }

  /** All values of a header that may be repeated. */
  all(name: string): readonly string[] {
    const { headers, repeated } = this.#parsed
    const first = headers.get(name)
    const others = repeated.filter(([other]) => other === name).map(([, value]) => value)
    return first === undefined ? [] : [first, ...others]
  }

  abort(): void {
    this.#control.abort()
  }

  pause(): void {
    this.#control.pause()
  }

  resume(): void {
    this.#control.resume()
  }

  /** The same head for a body that is read in another way. */
  withControl(control: BodyControl): ResponseHead {
    return new ResponseHead(this.#parsed, control, this.relay)
  }
}

/** Reads a response body: `data` is called any number of times, then `end` or `lost`. */
export interface ResponseBodyReader {
  /** A body up to this length should be delivered in one piece. */
  readonly whole?: number
  data(chunk: Buffer): void
  end(): void
  lost(error: Error): void
}

/** Thrown if a connection was not established in time. It has the error code that the operating system would use. */
export class ConnectTimeout extends Error {
  override readonly name = 'ConnectTimeout'
  readonly code = 'ETIMEDOUT'

  constructor(ms: number) {
    super(`no connection within ${ms / 1000} s (a fixed limit)`)
  }
}

/** Thrown if the connection failed before a response began. If `written`, the request may have reached the server. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse'
  readonly written: boolean

  constructor(written: boolean, cause: unknown) {
    super('no response', { cause })
    this.written = written
  }
}

/** Limits for reading a body whose content is not needed. */
const maxIgnored = 64 * 1024
const ignoredMs = 10_000

/** Reads a body to its end and drops it, so that the connection can be reused. */
export function discardBody(head: ResponseHead, clock: Clock): ResponseBodyReader {
  let length = 0
  const limit = clock.after(ignoredMs, () => head.abort())
  const over = () => limit[Symbol.dispose]()
  return {
    data(chunk) {
      length += chunk.length
      if (length > maxIgnored) head.abort()
    },
    end: over,
    lost: over,
  }
}

const noBytes = Buffer.alloc(0)

/** Reads a whole body, then calls exactly one of `done`, `lost` and `tooLong`. */
export function readWholeBody(
  head: ResponseHead,
  options: { readonly maxLength: number; done(bytes: Buffer): void; lost(error: Error): void; tooLong(): void },
): ResponseBodyReader {
  // The body, if it arrived in one piece, as most do. Such a body need not be copied.
  let only: Buffer | undefined
  let gathered: ByteCollector | undefined
  let dropped = false
  return {
    whole: options.maxLength,
    data(chunk) {
      if (dropped) return
      if ((gathered?.length ?? only?.length ?? 0) + chunk.length > options.maxLength) {
        dropped = true
        only = undefined
        gathered = undefined
        head.abort()
        options.tooLong()
      } else if (gathered) gathered.append(chunk)
      else if (only === undefined) only = chunk
      else {
        gathered = createByteCollector()
        gathered.append(only)
        gathered.append(chunk)
      }
    },
    end() {
      if (!dropped) options.done(gathered?.take() ?? only ?? noBytes)
    },
    lost(error) {
      if (!dropped) options.lost(error)
    },
  }
}

/** Thrown if a body is not in the encoding that its Content-Encoding names. */
export class UndecodableBody extends Error {
  override readonly name = 'UndecodableBody'
}

const chunks = { chunkSize: 64 * 1024 }
// The window that RFC 9659 allows: a larger one would let a short body take much memory.
const smallWindow = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }
const contentDecoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(chunks),
  'x-gzip': () => createGunzip(chunks),
  deflate: () => createInflate(chunks),
  br: () => createBrotliDecompress(chunks),
  zstd: () => createZstdDecompress({ ...chunks, ...smallWindow }),
}

/**
 * Chooses a reader for a body and decodes the body for it. Some servers and proxies compress although we ask them not
 * to. The reader's own limits apply to the decoded bytes.
 */
export function receiveDecoded(head: ResponseHead, receive: ReceiveBody): ResponseBodyReader {
  const { encoding } = head
  const decoder = Object.hasOwn(contentDecoders, encoding) ? contentDecoders[encoding]?.() : undefined
  if (!decoder) return receive(head)
  let over = false
  /** Why the encoded body is incomplete. Reported after what did arrive. */
  let lost: Error | undefined
  const finish = (error: Error | undefined): void => {
    if (over) return
    over = true
    decoder.destroy()
    if (error) reader.lost(error)
    else reader.end()
  }
  const abort = (): void => {
    head.abort()
    finish(new Error('response aborted'))
  }
  const control = {
    abort,
    pause() {
      // A few bytes may be decoded to gigabytes, so waiting for the next ones is not enough.
      decoder.pause()
      head.pause()
    },
    resume() {
      decoder.resume()
      head.resume()
    },
  }
  const reader = receive(head.withControl(control))
  decoder.on('data', (chunk: Buffer) => {
    if (!over) reader.data(chunk)
  })
  decoder.on('end', () => finish(lost))
  decoder.on('error', (error) => {
    finish(lost ?? new UndecodableBody(encoding, { cause: error }))
    head.abort()
  })
  return {
    data(chunk) {
      if (over) return
      decoder.write(chunk)
      if (decoder.writableLength > maxMessage) abort()
    },
    end() {
      if (!over) decoder.end()
    },
    lost(error) {
      lost = error
      if (!over) decoder.end()
    },
  }
}

/** Reserved headers, which belong to MCP or to HTTP itself. */
const reservedHeaders = [
  ...['accept', 'connection', 'content-length', 'content-type', 'transfer-encoding'],
  ...['last-event-id', 'mcp-protocol-version', 'mcp-session-id'],
]

/** The configured headers without reserved ones, and those for every request; credentials in the URL become an Authorization header. */
export function configuredHeaders(url: URL, headers: Readonly<Record<string, string | undefined>>) {
  // Without this header, a server may use any encoding. Compressing streams delays their events.
  const kept: Record<string, string> = { 'accept-encoding': 'identity' }
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) kept.authorization = authorization
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (value !== undefined && !reservedHeaders.includes(lower)) kept[lower] = value
  }
  return kept
}

/** Whether a value from a server may be sent back in a header: visible ASCII, of bounded length. */
export const isHeaderValue = (value: string | undefined): value is string =>
  value !== undefined && /^[\x21-\x7e]{1,1024}$/.test(value)
