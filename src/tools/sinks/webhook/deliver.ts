import type { Clock } from '../../../core/clock.ts'
import { deadline } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { basicAuthOf } from '../../../lib/basic-auth.ts'
import { retryAfterMs } from '../../../lib/retry-after.ts'
import type { Artifact } from '../sink.ts'

/** What came of one attempt. */
export interface Attempt {
  /**
   * `unsent`: nothing of it arrived. `lost`: it may have. `busy`: the receiver does not want it now. `refused`: it never
   * will. `acknowledged`: it has it.
   */
  readonly kind: 'acknowledged' | 'refused' | 'busy' | 'unsent' | 'lost'
  /** In a few words, without anything that could be a secret. */
  readonly reason: string
  readonly status?: number
  /** Where the receiver has put it, if it says so. */
  readonly location?: string
  readonly retryAfterMs?: number
}

export interface DeliverOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** For this attempt. */
  readonly timeout: number
  /** The setting that it comes from. */
  readonly timeoutKey: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Sends an artifact once. Throws only where nobody waits any more. */
export async function deliver(artifact: Artifact, options: DeliverOptions): Promise<Attempt> {
  const { clock, signal, timeout, timeoutKey } = options
  const url = new URL(options.url)
  const { Client } = await import('undici')
  // No address is vetted: the operator has chosen it. Nothing is followed that it leads to.
  const client = new Client(url.origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false })
  using limit = deadline(
    clock,
    timeout,
    () => new ToolwayError('TIMEOUT', `no answer within ${timeout / 1000} s (${timeoutKey})`),
    signal,
  )
  let isSent = false
  client.once('connect', () => {
    isSent = true
  })
  try {
    const answer = await client.request({
      method: 'POST',
      path: url.pathname + url.search,
      headers: headersOf(url, artifact, options.headers),
      body: JSON.stringify(artifact),
      signal: limit.signal,
    })
    // The head says it all; whatever happens to the body changes nothing about it.
    answer.body.on('error', () => {})
    answer.body.destroy()
    return outcomeOf(url, answer.statusCode, answer.headers, clock.now())
  } catch (thrown) {
    signal.throwIfAborted()
    return { kind: isSent ? 'lost' : 'unsent', reason: reasonOf(thrown) }
  } finally {
    await client.destroy()
  }
}

function headersOf(url: URL, { id }: Artifact, configured: Readonly<Record<string, string>>) {
  const headers: Record<string, string> = { 'user-agent': 'toolway' }
  for (const [name, value] of Object.entries(configured)) headers[name.toLowerCase()] = value
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) headers.authorization ??= authorization
  return { ...headers, 'content-type': 'application/json', 'idempotency-key': id }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

function outcomeOf(url: URL, status: number, headers: Headers, now: number): Attempt {
  const reason = `HTTP ${status}`
  if (status >= 200 && status < 300) {
    const location = publicAddress(url, headers.location)
    return { kind: 'acknowledged', reason, status, ...(location !== undefined && { location }) }
  }
  if (status >= 300 && status < 400) return { kind: 'refused', reason: `${reason}, a redirect`, status }
  if (status !== 429 && status < 500) return { kind: 'refused', reason, status }
  const waitMs = retryAfterMs(String(headers['retry-after'] ?? ''), now)
  const kind = status === 429 || status === 503 ? 'busy' : 'lost'
  return { kind, reason, status, ...(waitMs !== undefined && { retryAfterMs: waitMs }) }
}

/** An address of the receiver's that can be shown: no credentials, no other scheme. */
function publicAddress(url: URL, location: string | string[] | undefined): string | undefined {
  const written = String(location ?? '')
  const base = url.origin + url.pathname
  if (written === '' || written.length > 2_000 || !URL.canParse(written, base)) return undefined
  const found = new URL(written, base)
  return /^https?:$/.test(found.protocol) && found.username === '' && found.password === '' ? found.href : undefined
}

/** A code such as ECONNREFUSED; a name with several addresses fails with one error for each. */
function reasonOf(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (error instanceof ToolwayError) return error.message
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : 'unknown reason'
}
