import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { HttpClient } from '../../egress/http-client.ts'
import { ProxyError } from '../../egress/proxy.ts'
import { readBeginning } from '../../egress/read-bounded.ts'
import { retryAfterMs } from '../../lib/duration.ts'
import { createLazy } from '../../lib/memoize.ts'
import { failureReason } from '../../lib/message-text.ts'

export type OtlpReply =
  | { readonly kind: 'taken'; readonly rejected: number }
  | { readonly kind: 'later'; readonly why: string; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly why: string }

export interface OtlpClient extends AsyncDisposable {
  /** Sends a batch. Never rejects. */
  send(body: Buffer, signal: AbortSignal): Promise<OtlpReply>
}

export interface OtlpClientOptions {
  readonly url: URL
  /** The headers. They may hold credentials, so never log them. */
  readonly headers: Readonly<Record<string, string>>
  readonly delivery: OtlpDelivery
  readonly clock: Clock
}

/** How requests are sent, as OpenTelemetry's variables say. */
export interface OtlpDelivery {
  readonly gzip: boolean
  /** Time limit for a response. A slower receiver counts as down. */
  readonly timeoutMs: number
}

const compress = promisify(gzip)

/** Max bytes per response. Longer responses are not OTLP. */
const maxResponse = 64 * 1024

export function createOtlpClient({ url, headers, delivery, clock }: OtlpClientOptions): OtlpClient {
  const path = url.pathname + url.search
  const own = {
    ...headers,
    'content-type': 'application/x-protobuf',
    ...(delivery.gzip && { 'content-encoding': 'gzip' }),
  }
  const tooSlow = `no response within ${delivery.timeoutMs / 1000} s (OTEL_EXPORTER_OTLP_TIMEOUT)`

  // Load the HTTP client with the first batch, to keep startup fast.
  const client = createLazy<HttpClient>(async () => {
    const { createHttpClient } = await import('../../egress/http-client.ts')
    return createHttpClient(url, { connections: 1, keepAliveTimeout: 10_000 })
  })

  const post = async (bytes: Buffer, signal: AbortSignal): Promise<OtlpReply> => {
    const body = delivery.gzip ? await compress(bytes) : bytes
    const response = await (await client.get()).request({ method: 'POST', path, headers: own, body, signal })
    const { statusCode: status } = response
    if (status >= 200 && status < 300) {
      return { kind: 'taken', rejected: rejectedSpans((await readBeginning(response.body, maxResponse)).bytes) }
    }
    const [retryAfter] = [response.headers['retry-after']].flat()
    const waitMs = Math.min(retryAfterMs(retryAfter, clock.now()) ?? 0, maxRetryAfterMs)
    await response.body.dump({ limit: maxResponse, signal })
    const why = `HTTP ${status}`
    return retryable.has(status) ? { kind: 'later', why, waitMs } : { kind: 'refused', why }
  }

  return {
    async send(body, signal) {
      using limit = deadline(clock, delivery.timeoutMs, () => new Error(tooSlow), signal)
      try {
        return await post(body, limit.signal)
      } catch (thrown) {
        const isTooSlow = thrown instanceof Error && thrown.message === tooSlow
        return { kind: 'later', why: isTooSlow ? tooSlow : reasonOf(thrown), waitMs: 0 }
      }
    },
    async [Symbol.asyncDispose]() {
      await (await client.loaded())?.[Symbol.asyncDispose]()
    },
  }
}

const maxRetryAfterMs = 5 * 60_000

/** The status codes that OTLP/HTTP defines as retryable. */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

function reasonOf(thrown: unknown): string {
  if (thrown instanceof ProxyError || thrown instanceof ToolwayError) return thrown.message
  return `unreachable (${failureReason(thrown)})`
}

/**
 * OTLP in protobuf. Until a batch is sent, messages are strings in which each character is a byte: V8 joins strings
 * without copying them, and their lengths are those of the messages.
 */

/** A member that is a message or bytes. */
export const member = (number: number, bytes: string): string => tag(number, 2) + varint(bytes.length) + bytes

export const textMember = (number: number, text: string): string => member(number, utf8(text))

export const hexMember = (number: number, hex: string): string =>
  member(number, Buffer.from(hex, 'hex').toString('latin1'))

export const intMember = (number: number, value: number): string => tag(number, 0) + varint(value)

export function fixed32Member(number: number, value: number): string {
  scratch.writeUInt32LE(value)
  return tag(number, 5) + scratch.toString('latin1', 0, 4)
}

export function fixed64Member(number: number, value: bigint): string {
  scratch.writeBigUInt64LE(value)
  return tag(number, 1) + scratch.toString('latin1', 0, 8)
}

const scratch = Buffer.alloc(8)

const tag = (number: number, wireType: number): string => varint(number * 8 + wireType)

function varint(value: number): string {
  let bytes = ''
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes += String.fromCharCode((rest % 128) | 128)
  return bytes + String.fromCharCode(rest)
}

const utf8 = (text: string): string => (isAscii.test(text) ? text : Buffer.from(text).toString('latin1'))

const isAscii = /^[\0-\x7f]*$/

/** A key with a value, as member 1 of resources. Spans have them as member 9. */
export const textAttribute = (number: number, key: string, value: string): string =>
  member(number, textMember(1, key) + member(2, textMember(1, value)))

export const intAttribute = (number: number, key: string, value: number): string =>
  member(number, textMember(1, key) + member(2, intMember(3, value)))

/** Creates the encoder of requests with these attributes of the resource, for spans that `member` does not wrap yet. */
export function createTraceEncoder(resource: Readonly<Record<string, string>>, version: string) {
  const attributes = Object.entries(resource).map(([key, value]) => textAttribute(1, key, value))
  const head = member(1, attributes.join(''))
  const scope = member(1, textMember(1, 'toolway') + textMember(2, version))
  return (spans: readonly string[]): Buffer => {
    const scopeSpans = member(2, scope + spans.map((span) => member(2, span)).join(''))
    return Buffer.from(member(1, head + scopeSpans), 'latin1')
  }
}

/** The number of rejected spans in a response: member 1 of the partial success, which is member 1. */
export function rejectedSpans(response: Uint8Array): number {
  const partialSuccess = firstMember(response)
  const rejected = partialSuccess instanceof Uint8Array ? firstMember(partialSuccess) : undefined
  return typeof rejected === 'number' ? rejected : 0
}

/** The first member of a message if its number is 1 and it is an integer or has a length. */
function firstMember(message: Uint8Array): number | Uint8Array | undefined {
  let at = 1
  let value = 0
  for (let factor = 1; at < message.length; factor *= 128) {
    const byte = message[at++] as number
    value += (byte % 128) * factor
    if (byte < 128) break
  }
  if (message[0] === 0x08) return value
  return message[0] === 0x0a ? message.subarray(at, at + value) : undefined
}
