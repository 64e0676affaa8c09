import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { retryAfterMs } from '../../lib/backoff.ts'
import { failureReason } from '../../lib/failure-reason.ts'
import type { HttpClient } from '../../lib/http-client.ts'
import { asRecord } from '../../lib/is-record.ts'
import { createLazy } from '../../lib/lazy.ts'
import { parseJson } from '../../lib/parse-json.ts'
import { ProxyError } from '../../lib/proxy.ts'
import { readBeginning } from '../../lib/read-bounded.ts'

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
  readonly clock: Clock
}

/** Time limit for a response. A slower receiver counts as down. */
const timeoutMs = 10_000
const tooSlow = `no response within ${timeoutMs / 1000} s (a fixed limit)`
/** Max bytes per response. Longer responses are not OTLP. */
const maxResponse = 64 * 1024

export function createOtlpClient({ url, headers, clock }: OtlpClientOptions): OtlpClient {
  const path = url.pathname + url.search
  const own = { ...headers, 'content-type': 'application/json' }

  // Load the HTTP client with the first batch, to keep startup fast.
  const client = createLazy<HttpClient>(async () => {
    const { createHttpClient } = await import('../../lib/http-client.ts')
    return createHttpClient(url, { connections: 1, keepAliveTimeout: 10_000 })
  })

  const post = async (body: Buffer, signal: AbortSignal): Promise<OtlpReply> => {
    const response = await (await client.get()).request({ method: 'POST', path, headers: own, body, signal })
    const { statusCode: status } = response
    if (status >= 200 && status < 300) {
      return { kind: 'taken', rejected: rejectedBy(String((await readBeginning(response.body, maxResponse)).bytes)) }
    }
    const [retryAfter] = [response.headers['retry-after']].flat()
    const waitMs = Math.min(retryAfterMs(retryAfter, clock.now()) ?? 0, maxRetryAfterMs)
    await response.body.dump({ limit: maxResponse, signal })
    const why = `HTTP ${status}`
    return retryable.has(status) ? { kind: 'later', why, waitMs } : { kind: 'refused', why }
  }

  return {
    async send(body, signal) {
      using limit = deadline(clock, timeoutMs, () => new Error(tooSlow), signal)
      try {
        return await post(body, limit.signal)
      } catch (thrown) {
        return { kind: 'later', why: reasonOf(thrown), waitMs: 0 }
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

/** The number of rejected spans. A response that is not JSON, such as an empty one, counts as full success. */
function rejectedBy(response: string): number {
  const { rejectedSpans } = asRecord(asRecord(parseJson(response)).partialSuccess)
  return Math.max(Number(rejectedSpans ?? 0) || 0, 0)
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof ProxyError || thrown instanceof ToolwayError) return thrown.message
  const isTooSlow = thrown instanceof Error && thrown.message === tooSlow
  return isTooSlow ? tooSlow : `unreachable (${failureReason(thrown)})`
}
