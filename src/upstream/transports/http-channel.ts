import type { Clock } from '../../core/clock.ts'
import { basicAuthOf } from '../../lib/basic-auth.ts'
import { type ByteCollector, createByteCollector } from '../../wire/bytes.ts'

/** HTTP to one origin: requests whose answers are told as they arrive, without streams in between. */
export interface HttpChannel extends AsyncDisposable {
  /** Whether a connection over which the server has answered is still open. */
  readonly connected: boolean
  /** How often the last such connection was closed, by either side: another server may listen there since. */
  readonly gaps: number
  /**
   * Settles when the head of the answer is there; `receive` says at that moment who reads the rest.
   * Rejects with `NoAnswer` if none came, or with the signal's reason.
   */
  request(request: ChannelRequest, receive: (head: ResponseHead) => BodyReader): Promise<ResponseHead>
}

export interface ChannelRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: AbortSignal | undefined
}

export interface ResponseHead {
  readonly status: number
  /** The proxy that has passed it on, or may have made it up itself. */
  readonly relay?: string | undefined
  /** The media type, without parameters. */
  readonly type: string
  header(name: string): string | undefined
  /** Every value of a header that may come several times. */
  all(name: string): readonly string[]
  /** Stops the rest of the answer. */
  abort(): void
}

/** Whoever reads the rest of an answer: `data` any number of times, then one of the other two. */
export interface BodyReader {
  /** The length up to which it is wanted in one piece. */
  readonly whole?: number
  data(chunk: Buffer): void
  end(): void
  lost(error: Error): void
}

/** No connection was made in time. The code is the one that the operating system uses. */
export class ConnectTimeout extends Error {
  override readonly name = 'ConnectTimeout'
  readonly code = 'ETIMEDOUT'

  constructor(ms: number) {
    super(`no connection within ${ms / 1000} s, a fixed limit`)
  }
}

/** The connection failed before an answer began; `written` says whether the request may have reached the server. */
export class NoResponse extends Error {
  override readonly name = 'NoAnswer'
  readonly written: boolean

  constructor(written: boolean, cause: unknown) {
    super('no answer', { cause })
    this.written = written
  }
}

/** The most that is read of an answer whose content nobody needs, and how long its end is waited for. */
const maxIgnored = 64 * 1024
const ignoredMs = 10_000

/** Reads an answer to its end and forgets it, so that the connection can be used again. */
export function discardBody(head: ResponseHead, clock: Clock): BodyReader {
  let length = 0
  const limit = clock.after(ignoredMs, head.abort)
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

const nothing = Buffer.alloc(0)

/** Reads an answer whole. `tooLong` is told at most once and instead of the other two. */
export function readWholeBody(
  head: ResponseHead,
  options: { readonly maxLength: number; done(bytes: Buffer): void; lost(error: Error): void; tooLong(): void },
): BodyReader {
  // Most answers come in one piece, which then need not be copied.
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
      if (!dropped) options.done(gathered?.take() ?? only ?? nothing)
    },
    lost(error) {
      if (!dropped) options.lost(error)
    },
  }
}

/** Header names that belong to the protocol or to HTTP itself. */
const ours = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'transfer-encoding',
])

/** The configured headers without those that are ours to set; credentials in the address become the usual header. */
export function configuredHeaders(
  url: URL,
  headers: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const kept: Record<string, string> = {}
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) kept.authorization = authorization
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (value !== undefined && !ours.has(lower)) kept[lower] = value
  }
  return kept
}

/** A value that a server gave us and that we may send back in a header: visible ASCII, of a sane length. */
export const isHeaderValue = (value: string | undefined): value is string =>
  value !== undefined && /^[\x21-\x7e]{1,1024}$/.test(value)
