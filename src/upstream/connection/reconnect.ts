import { availableParallelism } from 'node:os'
import type { Clock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { backoffMs } from '../../lib/duration.ts'

export interface RestartLimit {
  readonly max: number
  readonly window: number
}

export interface ReconnectBackoffOptions {
  /** The restart limit, for stdio servers only, because Toolway does not start remote servers. */
  readonly restarts?: RestartLimit | undefined
  readonly random?: () => number
}

const firstReconnectMs = 1_000
const maxReconnectMs = 30_000
/** The maximum pause while callers need a server that could be reached before: it is probably restarting. */
const maxCalledPauseMs = 10_000
/** How often to check whether somebody has signed in. */
const signInPauseMs = 5_000
/** Upper bound for Retry-After. */
const maxAskedMs = 300_000

/**
 * Decides when to try again to reach a server that is down or keeps crashing; shared by all its connections. Exponential
 * backoff with jitter, so that waiting callers do not all retry at the same time. A single crash causes no pause: most
 * crashes are accidents, and the restart limit stops repeated ones.
 */
export class ReconnectBackoff {
  readonly #clock: Clock
  readonly #restarts: RestartLimit | undefined
  readonly #random: () => number
  #failure: ToolwayError | undefined
  #failures = 0
  #isExhausted = false
  #retryAt = 0
  /** When to try again if a caller needs the server. */
  #calledRetryAt = 0
  #wasReached = false
  #probes = 0
  /** When the restarts within the last window happened. */
  #recent: number[] = []

  constructor(clock: Clock, { restarts, random = Math.random }: ReconnectBackoffOptions = {}) {
    this.#clock = clock
    this.#restarts = restarts
    this.#random = random
  }

  /** Why the server could not be reached; undefined as soon as it is reached again. */
  get failure(): ToolwayError | undefined {
    return this.#failure
  }

  /** Milliseconds until the next attempt is allowed; 0 if it is allowed now. */
  get pauseMs(): number {
    return this.#failure ? Math.max(0, this.#retryAt - this.#clock.monotonic()) : 0
  }

  /** Whether the restart limit was reached. If so, the server starts once per window until a process survives one. */
  get exhausted(): boolean {
    return this.#isExhausted
  }

  /** Whether an attempt is under way while the server is known to be down. */
  get probing(): boolean {
    return this.#probes > 0
  }

  /** Marks the beginning of an attempt, which lasts until the returned object is disposed of. */
  attempt(): Disposable {
    const probe = this.#failure ? 1 : 0
    this.#probes += probe
    return {
      [Symbol.dispose]: () => {
        this.#probes -= probe
      },
    }
  }

  failed(error: ToolwayError): void {
    this.#failure = error
    // Use a fixed pause instead of backoff: the server is up, and somebody may sign in at any time.
    if (error.code === 'AUTH_REQUIRED') {
      this.#retryAt = this.#clock.monotonic() + signInPauseMs
      this.#calledRetryAt = this.#retryAt
      return
    }
    const jitter = this.#random()
    const asked = Math.min(error.details.retryAfterMs ?? 0, maxAskedMs)
    const afterAtMost = (maxMs: number) =>
      this.#clock.monotonic() +
      Math.max(jitter * backoffMs(this.#failures, { firstMs: firstReconnectMs, maxMs }), asked)
    this.#retryAt = afterAtMost(maxReconnectMs)
    this.#calledRetryAt = this.#wasReached ? afterAtMost(maxCalledPauseMs) : this.#retryAt
    this.#failures++
    this.#countRestart(error)
  }

  /** Called when a caller needs the server. Shortens a long pause if the server could be reached before. */
  called(): void {
    if (!this.#isExhausted) this.#retryAt = Math.min(this.#retryAt, this.#calledRetryAt)
  }

  /** Called when the server's process ended unexpectedly after a successful connection. */
  crashed(error: ToolwayError, livedMs: number): void {
    // A process that survived a whole window does not count towards the restart limit.
    if (this.#restarts && livedMs >= this.#restarts.window) this.#isExhausted = false
    else this.#countRestart(error)
  }

  succeeded(): void {
    this.#failure = undefined
    this.#failures = 0
    this.#wasReached = true
  }

  /** Forgets all failures, for a restart by an operator. */
  reset(): void {
    this.#failure = undefined
    this.#failures = 0
    this.#isExhausted = false
    this.#recent = []
  }

  #countRestart(error: ToolwayError): void {
    if (!this.#restarts) return
    const { max, window } = this.#restarts
    const now = this.#clock.monotonic()
    this.#recent = [...this.#recent.filter((at) => at > now - window), now]
    if (!this.#isExhausted && this.#recent.length <= max) return
    this.#isExhausted = true
    this.#failure = error
    this.#retryAt = Math.max(this.#retryAt, now + window)
  }
}

/** Waits for a turn to start a server. The turn lasts until the returned object is disposed of. */
export type StartQueue = (isCalled: () => boolean, signal: AbortSignal) => Promise<Disposable>

/** How long a start can keep others waiting. A longer one is not using the processor: it downloads, or hangs. */
const maxStartTurnMs = 10_000

/**
 * Lets as many servers start at a time as there are cores, so that the first ones are ready early instead of all of them
 * late. Servers that calls wait for go first.
 */
export function createStartQueue(clock: Clock, maxStarts = availableParallelism()): StartQueue {
  const waiting = new Map<() => void, () => boolean>()
  let running = 0

  const next = (): void => {
    if (running >= maxStarts || waiting.size === 0) return
    const all = [...waiting]
    const [start] = all.find(([, isCalled]) => isCalled()) ?? (all[0] as (typeof all)[0])
    waiting.delete(start)
    running++
    start()
  }

  return async (isCalled, signal) => {
    const turn = Promise.withResolvers<void>()
    waiting.set(turn.resolve, isCalled)
    next()
    let held = true
    const leave = () => {
      timer?.[Symbol.dispose]()
      if (held && !waiting.delete(turn.resolve)) running--
      held = false
      next()
    }
    let timer: Disposable | undefined
    await endWith(signal, turn.promise).catch((error) => {
      leave()
      throw error
    })
    timer = clock.after(maxStartTurnMs, leave)
    return { [Symbol.dispose]: leave }
  }
}
