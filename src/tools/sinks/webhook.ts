import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline, pause } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { jitteredBackoffMs, retryAfterMs } from '../../lib/duration.ts'
import { failureReason } from '../../lib/message-text.ts'
import { basicAuthOf } from '../../lib/url.ts'
import type { Artifact, Pointer, Sink } from './sink.ts'

type WebhookConfig = Pick<
  Extract<Config['sinks'][string], { kind: 'webhook' }>,
  'url' | 'headers' | 'attempts' | 'timeout'
>

const firstRetryPauseMs = 500
const maxRetryPauseMs = 10_000

/** What is posted. The id is also the idempotency key. */
interface Posted {
  readonly id: string
}

const chatEntities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Text for Slack and the chats that accept the same messages. Unescaped, a name could be a link or notify everyone. */
export const chatText = (text: string): string =>
  text.replace(/[&<>]/g, (character) => chatEntities[character] as string)

interface PostOptions {
  readonly config: WebhookConfig
  /** The setting that limits one attempt, for messages. */
  readonly timeoutKey: string
  /** What the log says about the delivery. */
  readonly facts: Readonly<Record<string, unknown>>
  readonly clock: Clock
  readonly log: Log
  random?: (() => number) | undefined
}

interface WebhookOptions extends Omit<PostOptions, 'timeoutKey' | 'facts'> {
  readonly name: string
}

interface Delivery {
  /** The last attempt. The delivery succeeded if it was acknowledged. */
  readonly attempt: Attempt
  readonly attempts: number
  readonly mayHaveArrived: boolean
}

/**
 * Posts JSON. If it did not arrive, or may not have arrived, it is sent again with the same idempotency key, so that the
 * receiver can detect duplicates. What was acknowledged or refused is never sent again. Throws only if the signal
 * aborts.
 */
export async function postWithRetries(body: Posted, options: PostOptions, signal: AbortSignal): Promise<Delivery> {
  const { config, facts, clock, log, random = Math.random } = options
  /** The pause before the next attempt, with jitter, so that failed deliveries are not all retried together. */
  const pauseAfter = (attempts: number, { retryAfterMs = 0 }: Attempt): number => {
    const jittered = jitteredBackoffMs(attempts - 1, { firstMs: firstRetryPauseMs, maxMs: maxRetryPauseMs }, random)
    return Math.max(Math.round(jittered), retryAfterMs)
  }
  let mayHaveArrived = false
  for (let attempts = 1; ; attempts++) {
    const attempt = await deliver(body, options, signal)
    mayHaveArrived ||= attempt.kind === 'lost'
    const ms = pauseAfter(attempts, attempt)
    const isOver = attempt.kind === 'acknowledged' || attempt.kind === 'refused'
    if (isOver || attempts === config.attempts || ms > maxRetryPauseMs) return { attempt, attempts, mayHaveArrived }
    log.info({ ...facts, id: body.id, reason: attempt.reason, ms }, 'webhook delivery failed; retrying')
    await pause(clock, ms, signal)
  }
}

/** A sink that posts artifacts. */
export function createWebhookSink({ name, ...options }: WebhookOptions): Omit<Sink, 'description'> {
  const { config } = options
  const timeoutKey = `sinks.${name}.timeout`
  return {
    name,
    // The timeout covers all attempts and the pauses between them.
    timeoutMs: config.attempts * (config.timeout + maxRetryPauseMs),
    timeoutKey,
    async write(artifact: Artifact, { signal }): Promise<Pointer> {
      const posting = { ...options, timeoutKey, facts: { sink: name } }
      const { attempt, attempts, mayHaveArrived } = await postWithRetries(artifact, posting, signal)
      if (attempt.kind === 'acknowledged') {
        return { uri: attempt.location ?? `sink://${name}/${artifact.id}`, status: attempt.status, attempts }
      }
      if (attempt.kind === 'refused') throw refusedDelivery(name, attempt)
      throw gaveUp(name, artifact.id, { attempt, attempts, mayHaveArrived })
    },
  }
}

function refusedDelivery(name: string, { reason, status = 0 }: Attempt): ToolwayError {
  const isContent = [400, 413, 415, 422].includes(status)
  const advice = isContent ? 'Change the content or metadata.' : `The operator can correct sinks.${name}.`
  return new ToolwayError(
    isContent ? 'INVALID_ARGUMENTS' : 'SERVER_UNAVAILABLE',
    `The receiver for the sink ${name} rejected the delivery (${reason}), so it was not retried. ${advice}`,
  )
}

function gaveUp(name: string, id: string, { attempt, attempts, mayHaveArrived }: Delivery): ToolwayError {
  const { reason, retryAfterMs } = attempt
  const times = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
  const receiver = `The receiver for the sink ${name}`
  if (!mayHaveArrived) {
    const sentence = `${receiver} could not be reached in ${times} (${reason}); nothing was delivered. Try again later.`
    return new ToolwayError('SERVER_UNAVAILABLE', sentence, { retryAfterMs })
  }
  const sentence = `${receiver} did not acknowledge the delivery in ${times} (${reason}); it may have arrived.`
  const advice = `Send it again only with metadata.id "${id}", so that the receiver can detect a duplicate.`
  return new ToolwayError('OUTCOME_UNKNOWN', `${sentence} ${advice}`, { retryAfterMs })
}

interface Attempt {
  /**
   * `acknowledged`: it arrived. `refused`: the receiver will never accept it. `busy`: the receiver cannot
   * accept it now. `unsent`: nothing arrived. `lost`: it may have arrived.
   */
  readonly kind: 'acknowledged' | 'refused' | 'busy' | 'unsent' | 'lost'
  /** The reason in a few words, without anything that could be a secret. */
  readonly reason: string
  readonly status?: number
  readonly location?: string
  readonly retryAfterMs?: number
}

/** Posts once. Throws only if the signal aborts. */
async function deliver(body: Posted, options: PostOptions, signal: AbortSignal): Promise<Attempt> {
  const { timeoutKey, clock, config } = options
  const url = new URL(config.url)
  const { Client } = await import('undici')
  // The address is not vetted, because the operator configured it. Redirects are not followed.
  const client = new Client(url.origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false })
  const tooLate = () => new ToolwayError('TIMEOUT', `no response within ${config.timeout / 1000} s (${timeoutKey})`)
  using limit = deadline(clock, config.timeout, tooLate, signal)
  let isSent = false
  client.once('connect', () => {
    isSent = true
  })
  try {
    const answer = await client.request({
      method: 'POST',
      path: url.pathname + url.search,
      headers: headersOf(url, body, config.headers),
      body: JSON.stringify(body),
      signal: limit.signal,
    })
    // Only the status and the headers matter, so ignore errors in the body.
    answer.body.on('error', () => {})
    answer.body.destroy()
    return deliveryOutcome(url, answer.statusCode, answer.headers, clock.now())
  } catch (thrown) {
    signal.throwIfAborted()
    const reason = thrown instanceof ToolwayError ? thrown.message : failureReason(thrown)
    return { kind: isSent ? 'lost' : 'unsent', reason }
  } finally {
    await client.destroy()
  }
}

function headersOf(url: URL, { id }: Posted, configured: Readonly<Record<string, string>>) {
  const headers: Record<string, string> = { 'user-agent': 'toolway' }
  for (const [name, value] of Object.entries(configured)) headers[name.toLowerCase()] = value
  const authorization = basicAuthOf(url)
  if (authorization !== undefined) headers.authorization ??= authorization
  return { ...headers, 'content-type': 'application/json', 'idempotency-key': id }
}

type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

function deliveryOutcome(url: URL, status: number, headers: ResponseHeaders, now: number): Attempt {
  const reason = `HTTP ${status}`
  if (status >= 200 && status < 300)
    return { kind: 'acknowledged', reason, status, location: publicAddress(url, headers.location) }
  if (status >= 300 && status < 400) return { kind: 'refused', reason: `${reason}, a redirect`, status }
  if (status !== 429 && status < 500) return { kind: 'refused', reason, status }
  const kind = status === 429 || status === 503 ? 'busy' : 'lost'
  return { kind, reason, status, retryAfterMs: retryAfterMs(String(headers['retry-after'] ?? ''), now) }
}

/** The Location header, if it may be shown: an http or https URL without credentials. */
function publicAddress(url: URL, location: string | string[] | undefined): string | undefined {
  const written = String(location ?? '')
  const found = written === '' || written.length > 2_000 ? null : URL.parse(written, url.origin + url.pathname)
  return found && /^https?:$/.test(found.protocol) && !found.username && !found.password ? found.href : undefined
}
