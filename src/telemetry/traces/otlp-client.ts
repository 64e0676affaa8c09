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
import { rejectedSpans } from './otlp-protobuf.ts'

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
