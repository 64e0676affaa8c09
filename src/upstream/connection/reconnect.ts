import type { Clock } from '../../core/clock.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { jitteredBackoffMs } from '../../lib/backoff.ts'

/** How long a server that could not be reached, or that keeps crashing, is left alone; one for all lines to it. */
export interface ReconnectBackoff {
  /** Why it could not be reached, until it can be. */
  readonly failure: ToolwayError | undefined
  /** How long it is still left alone; not at all if zero. */
  readonly pauseMs: number
  /** Whether it has used up its starts, so that it gets one in each window until one of them lasts. */
  readonly exhausted: boolean
  /** Whether somebody is trying, while it is known to be down, to reach it again. */
  readonly probing: boolean
  /** An attempt begins, and lasts until disposed of. */
  attempt(): Disposable
  failed(error: ToolwayError): void
  /** It had been reached, and then its process ended by itself. */
  crashed(error: ToolwayError, livedMs: number): void
  succeeded(): void
  /** Somebody wants it to be tried again, whatever happened before. */
  reset(): void
}

/** How many starts may come to nothing within a window. */
export interface RestartLimit {
  readonly max: number
  readonly window: number
}

export interface ReconnectBackoffOptions {
  /** Only processes have one: whatever runs elsewhere is not ours to start. */
  readonly restarts?: RestartLimit | undefined
  /** From 0 to 1. */
  readonly random?: () => number
}

const firstPauseMs = 1_000
const maxPauseMs = 30_000
/** How often it is looked whether somebody has signed in. */
const signInPauseMs = 5_000
/** What a server says about when to come back is heeded, within reason. */
const maxAskedMs = 300_000

/**
 * Attempts that fail are spread at random over a time that doubles, so that many who wait for one server do not come
 * back together. A crash alone costs no pause: most are accidents, and the limit of starts stops the others.
 */
export function createReconnectBackoff(
  clock: Clock,
  { restarts, random = Math.random }: ReconnectBackoffOptions = {},
): ReconnectBackoff {
  let failure: ToolwayError | undefined
  let failures = 0
  let retryAt = 0
  let probes = 0
  let exhausted = false
  let recent: number[] = []

  /** Counts a start that came to nothing. */
  const used = (error: ToolwayError): void => {
    if (!restarts) return
    const now = clock.monotonic()
    recent = [...recent.filter((at) => at > now - restarts.window), now]
    if (!exhausted && recent.length <= restarts.max) return
    exhausted = true
    failure = error
    retryAt = Math.max(retryAt, now + restarts.window)
  }

  return {
    get failure() {
      return failure
    },
    get pauseMs() {
      return failure ? Math.max(0, retryAt - clock.monotonic()) : 0
    },
    get exhausted() {
      return exhausted
    },
    get probing() {
      return probes > 0
    },
    attempt() {
      const probe = failure ? 1 : 0
      probes += probe
      return {
        [Symbol.dispose]() {
          probes -= probe
        },
      }
    },
    failed(error) {
      failure = error
      // It is there, and nobody knows when somebody will sign in.
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
      // One that has lasted for a whole window is no start that came to nothing.
      if (restarts && livedMs >= restarts.window) exhausted = false
      else used(error)
    },
    succeeded() {
      failure = undefined
      failures = 0
    },
    reset() {
      failure = undefined
      failures = 0
      exhausted = false
      recent = []
    },
  }
}

/** Tries a server that is down again in the background, so that it comes back by itself (T5). */
interface Reconnector extends Disposable {
  /** It could not be reached. */
  failed(): void
}

interface ReconnectorOptions {
  /** Whether the server is still down. */
  down(): boolean
  /** How long it is to be left alone. */
  pauseMs(): number
  /** Whether anybody would be glad if it came back: a process is not started again and again for nobody. */
  wanted(): boolean
  /** Tries once; whether that failed is told by `failed`. */
  attempt(): Promise<unknown>
  readonly clock: Clock
}

/** Jitter may leave no pause at all; that is too eager for an attempt that nobody waits for. */
const shortestPauseMs = 500

export function createReconnector({ down, pauseMs, wanted, attempt, clock }: ReconnectorOptions): Reconnector {
  let timer: Disposable | undefined
  let over = false

  const probe = (): void => {
    timer = undefined
    // Somebody else was quicker, or nobody cares: the next call tries it again.
    if (over || !down() || !wanted()) return
    if (pauseMs() > 0) schedule()
    // One that was refused because another is under way is followed by its outcome.
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
