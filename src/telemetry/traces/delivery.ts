import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/backoff.ts'
import type { Post, Reply } from './post.ts'

/** Brings batches to the receiver, again and again where it must be. */
export interface Delivery extends Disposable {
  /** How many of these spans were taken. Never rejects. */
  deliver(body: Buffer, spans: number): Promise<number>
  /** From now on nothing is waited for: each batch is tried once. */
  hurry(): void
}

export interface DeliveryOptions {
  readonly post: Post
  /** Where spans go, for the log: no part of it may be secret. */
  readonly receiver: string
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** How often one batch is tried, and how long the pauses between may get. */
const maxAttempts = 5
const firstPauseMs = 1_000
const maxPauseMs = 30_000

export function createDelivery(options: DeliveryOptions): Delivery {
  const { post, receiver, clock, log, random = Math.random } = options
  const over = new AbortController()
  let hurried = false
  let wake: (() => void) | undefined
  let failures = 0
  /** Before this nothing is tried, whichever batch it is. */
  let resumeAt = 0

  return {
    async deliver(body, spans) {
      for (let tried = 1; ; tried++) {
        await untilResumed()
        const reply = await post.send(body, over.signal)
        if (reply.kind === 'taken') {
          recovered()
          return spans - Math.min(reply.rejected, spans)
        }
        failed(reply)
        if (reply.kind === 'refused' || tried === maxAttempts || hurried) return 0
      }
    },
    hurry() {
      hurried = true
      wake?.()
    },
    [Symbol.dispose]: () => over.abort(),
  }

  async function untilResumed(): Promise<void> {
    const ms = resumeAt - clock.monotonic()
    if (hurried || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    using _ = clock.after(ms, resolve)
    wake = resolve
    await promise
  }

  /** One line for each outage, not one for each batch. */
  function failed(reply: Exclude<Reply, { kind: 'taken' }>): void {
    const most = backoffMs(failures, { firstMs: firstPauseMs, maxMs: maxPauseMs })
    // A random part of it, so that those who failed together do not come back together.
    const pauseMs = most / 2 + (most / 2) * random()
    resumeAt = clock.monotonic() + Math.max(pauseMs, reply.kind === 'later' ? reply.waitMs : 0)
    if (failures++ > 0) return
    log.warn({ receiver, reason: reply.why }, 'traces cannot be delivered; they wait, and are dropped if too many do')
  }

  function recovered(): void {
    if (failures > 0) log.info({ receiver }, 'traces are delivered again')
    failures = 0
    resumeAt = 0
  }
}
