import type { Clock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { jitteredBackoffMs } from '../../lib/backoff.ts'

/** When to try again to reach a server that is down or keeps crashing; shared by all connections to it. */
export interface ReconnectBackoff {
  /** Why it could not be reached, until it can be. */
  readonly failure: ToolwayError | undefined
  /** Milliseconds until the next attempt; 0 for now. */
  readonly pauseMs: number
  /** The restart limit was reached: one start per window until a process survives a whole window. */
  readonly exhausted: boolean
  /** Whether an attempt is under way while the server is known to be down. */
  readonly probing: boolean
  /** Begins an attempt, which lasts until disposed of. */
  attempt(): Disposable
  failed(error: ToolwayError): void
  /** Its process ended unexpectedly after it had been reached. */
  crashed(error: ToolwayError, livedMs: number): void
  succeeded(): void
  /** Forgets all failures, for a restart by an operator. */
  reset(): void
}

export interface RestartLimit {
  readonly max: number
  readonly window: number
}

export interface ReconnectBackoffOptions {
  /** For processes only: Toolway does not start remote servers. */
  readonly restarts?: RestartLimit | undefined
  readonly random?: () => number
}

const firstPauseMs = 1_000
const maxPauseMs = 30_000
/** How often to check whether somebody has signed in. */
const signInPauseMs = 5_000
/** Upper bound for Retry-After. */
const maxAskedMs = 300_000

/**
 * Exponential backoff with jitter, so that many waiters do not return together. A single crash costs no pause: most
 * are accidents, and the restart limit stops the others.
 */
export function createReconnectBackoff(
  clock: Clock,
  { restarts, random = Math.random }: ReconnectBackoffOptions = {},
): ReconnectBackoff {
  let failures = 0
  let retryAt = 0
  let probes = 0
  let recent: number[] = []

  const used = (error: ToolwayError): void => {
    if (!restarts) return
    const now = clock.monotonic()
    recent = [...recent.filter((at) => at > now - restarts.window), now]
    if (!backoff.exhausted && recent.length <= restarts.max) return
    backoff.exhausted = true
    backoff.failure = error
    retryAt = Math.max(retryAt, now + restarts.window)
  }

  const backoff: ReconnectBackoff & { failure: ToolwayError | undefined; exhausted: boolean } = {
    failure: undefined,
    exhausted: false,
    get pauseMs() {
      return backoff.failure ? Math.max(0, retryAt - clock.monotonic()) : 0
    },
    get probing() {
      return probes > 0
    },
    attempt() {
      const probe = backoff.failure ? 1 : 0
      probes += probe
      return {
        [Symbol.dispose]() {
          probes -= probe
        },
      }
    },
    failed(error) {
      backoff.failure = error
      // The server is up, and nobody knows when somebody will sign in.
      if (error.code === 'AUTH_REQUIRED') {
        retryAt = clock.monotonic() + signInPauseMs
        return
      }
      const jittered = jitteredBackoffMs(failures++, { firstMs: firstPauseMs, maxMs: maxPauseMs }, random)
      const asked = Math.min(error.details.retryAfterMs ?? 0, maxAskedMs)
      retryAt = clock.monotonic() + Math.max(jittered, asked)
      used(error)
    },
    crashed(error, livedMs) {
      // A process that survived a whole window is not a failed start.
      if (restarts && livedMs >= restarts.window) backoff.exhausted = false
      else used(error)
    },
    succeeded() {
      backoff.failure = undefined
      failures = 0
    },
    reset() {
      backoff.succeeded()
      backoff.exhausted = false
      recent = []
    },
  }
  return backoff
}

interface ReconnectorOptions {
  down(): boolean
  pauseMs(): number
  /** Whether to reconnect at all: a process is not restarted repeatedly if nobody uses it. */
  wanted(): boolean
  /** Tries once; `failed` reports failure. */
  attempt(): Promise<unknown>
  readonly clock: Clock
}

/** Jitter may leave no pause at all, which is too eager for a background attempt. */
const shortestPauseMs = 500

/** Reconnects to a server that is down in the background (T5). */
export function createReconnector({ down, pauseMs, wanted, attempt, clock }: ReconnectorOptions) {
  let timer: Disposable | undefined
  let over = false

  const probe = (): void => {
    timer = undefined
    // Reconnected meanwhile, or not wanted: the next call tries again.
    if (over || !down() || !wanted()) return
    if (pauseMs() > 0) schedule()
    // Another attempt is under way: follow its outcome.
    else
      attempt().catch(() => {
        if (!timer && down()) schedule()
      })
  }

  const schedule = (): void => {
    timer?.[Symbol.dispose]()
    timer = over ? undefined : clock.after(Math.max(pauseMs(), shortestPauseMs), probe)
  }

  return {
    failed: schedule,
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
    },
  }
}
