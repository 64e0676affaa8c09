import type { Config } from '../../../config/schema.ts'
import type { Clock } from '../../../core/clock.ts'
import { waitFor } from '../../../core/deadline.ts'
import { ToolwayError } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import { jitteredBackoffMs } from '../../../lib/backoff.ts'
import type { Artifact, Pointer, Sink } from '../sink.ts'
import { type Attempt, deliver } from './deliver.ts'

export type WebhookConfig = Pick<
  Extract<Config['sinks'][string], { kind: 'webhook' }>,
  'url' | 'headers' | 'attempts' | 'timeout'
>

export interface WebhookOptions {
  readonly name: string
  readonly config: WebhookConfig
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

const firstPauseMs = 500
const maxPauseMs = 10_000

/**
 * Posts artifacts. What surely or maybe did not arrive is sent again under the same key, by which a receiver can tell
 * that it has it already; what was acknowledged or refused never is.
 */
export function webhookSink({
  name,
  config,
  clock,
  log,
  random = Math.random,
}: WebhookOptions): Omit<Sink, 'description'> {
  /** A random part of what it may be at most: those who failed together do not come back together. */
  const pauseAfter = (attempts: number, { retryAfterMs = 0 }: Attempt): number => {
    const jittered = jitteredBackoffMs(attempts - 1, { firstMs: firstPauseMs, maxMs: maxPauseMs }, random)
    return Math.max(Math.round(jittered), retryAfterMs)
  }

  return {
    name,
    // All attempts and the pauses between them.
    timeoutMs: config.attempts * (config.timeout + maxPauseMs),
    timeoutKey: `sinks.${name}.timeout`,
    async write(artifact: Artifact, { signal }): Promise<Pointer> {
      let mayHaveArrived = false
      for (let attempts = 1; ; attempts++) {
        const attempt = await deliver(artifact, { ...config, timeoutKey: `sinks.${name}.timeout`, clock, signal })
        if (attempt.kind === 'acknowledged') {
          return { uri: attempt.location ?? `sink://${name}/${artifact.id}`, status: attempt.status, attempts }
        }
        if (attempt.kind === 'refused') throw refused(name, attempt)
        mayHaveArrived ||= attempt.kind === 'lost'
        const ms = pauseAfter(attempts, attempt)
        if (attempts === config.attempts || ms > maxPauseMs) throw gaveUp(name, attempt, attempts, mayHaveArrived)
        log.info({ sink: name, id: artifact.id, reason: attempt.reason, ms }, 'a delivery failed and is tried again')
        await pause(clock, ms, signal)
      }
    },
  }
}

async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _timer = clock.after(ms, resolve)
  await waitFor(promise, signal)
}

function refused(name: string, { reason, status = 0 }: Attempt): ToolwayError {
  const isContent = [400, 413, 415, 422].includes(status)
  const advice = isContent ? 'Change what you send.' : `The operator can mend sinks.${name}.`
  return new ToolwayError(
    isContent ? 'INVALID_ARGUMENTS' : 'SERVER_UNAVAILABLE',
    `The receiver of the sink ${name} refused the delivery (${reason}), so it was not sent again. ${advice}`,
  )
}

function gaveUp(name: string, attempt: Attempt, attempts: number, mayHaveArrived: boolean): ToolwayError {
  const { reason, retryAfterMs } = attempt
  const times = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
  const details = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (mayHaveArrived) {
    return new ToolwayError(
      'OUTCOME_UNKNOWN',
      `The receiver of the sink ${name} did not acknowledge the delivery in ${times} (${reason}); it may have arrived. ` +
        'Send it again only with the same metadata.id, by which the receiver can tell.',
      details,
    )
  }
  return new ToolwayError(
    'SERVER_UNAVAILABLE',
    `The receiver of the sink ${name} could not be reached in ${times} (${reason}): nothing was delivered. Try again later.`,
    details,
  )
}
