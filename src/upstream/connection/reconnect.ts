import { availableParallelism } from 'node:os'
import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { backoffMs } from '../../lib/backoff.ts'

/** Decides when to try again to reach a server that is down or keeps crashing; shared by all its connections. */
export interface ReconnectBackoff {
  /** Why the server could not be reached; undefined as soon as it is reached again. */
  readonly failure: ToolwayError | undefined
  /** Milliseconds until the next attempt is allowed; 0 if it is allowed now. */
  readonly pauseMs: number
  /** Whether the restart limit was reached. If so, the server starts once per window until a process survives one. */
  readonly exhausted: boolean
  /** Whether an attempt is under way while the server is known to be down. */
  readonly probing: boolean
  /** Marks the beginning of an attempt, which lasts until the returned object is disposed of. */
  attempt(): Disposable
  failed(error: ToolwayError): void
  /** Called when a caller needs the server. Shortens a long pause if the server could be reached before. */
  called(): void
  /** Called when the server's process ended unexpectedly after a successful connection. */
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
  /** The restart limit, for stdio servers only, because Toolway does not start remote servers. */
  readonly restarts?: RestartLimit | undefined
  readonly random?: () => number
}

const firstPauseMs = 1_000
const maxPauseMs = 30_000
/** The maximum pause while callers need a server that could be reached before: it is probably restarting. */
const maxCalledPauseMs = 10_000
/** How often to check whether somebody has signed in. */
const signInPauseMs = 5_000
/** Upper bound for Retry-After. */
const maxAskedMs = 300_000

/**
 * Exponential backoff with jitter, so that waiting callers do not all retry at the same time. A single crash causes no
 * pause: most crashes are accidents, and the restart limit stops repeated ones.
 */
export function createReconnectBackoff(
  clock: Clock,
  { restarts, random = Math.random }: ReconnectBackoffOptions = {},
): ReconnectBackoff {
  let failures = 0
  let retryAt = 0
  /** When to try again if a caller needs the server. */
  let calledRetryAt = 0
  let wasReached = false
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

  const forget = (): void => {
    backoff.failure = undefined
    failures = 0
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
      // Use a fixed pause instead of backoff: the server is up, and somebody may sign in at any time.
      if (error.code === 'AUTH_REQUIRED') {
        retryAt = clock.monotonic() + signInPauseMs
        calledRetryAt = retryAt
        return
      }
      const jitter = random()
      const asked = Math.min(error.details.retryAfterMs ?? 0, maxAskedMs)
      const afterAtMost = (maxMs: number) =>
        clock.monotonic() + Math.max(jitter * backoffMs(failures, { firstMs: firstPauseMs, maxMs }), asked)
      retryAt = afterAtMost(maxPauseMs)
      calledRetryAt = wasReached ? afterAtMost(maxCalledPauseMs) : retryAt
      failures++
      used(error)
    },
    called() {
      if (!backoff.exhausted) retryAt = Math.min(retryAt, calledRetryAt)
    },
    crashed(error, livedMs) {
      // A process that survived a whole window does not count towards the restart limit.
      if (restarts && livedMs >= restarts.window) backoff.exhausted = false
      else used(error)
    },
    succeeded() {
      forget()
      wasReached = true
    },
    reset() {
      forget()
      backoff.exhausted = false
      recent = []
    },
  }
  return backoff
}

interface ReconnectorOptions {
  down(): boolean
  pauseMs(): number
  /** Whether to reconnect at all: an unused process is not restarted again and again. */
  wanted(): boolean
  /** Makes one connection attempt. If it fails, the caller must call the reconnector's `failed`. */
  attempt(): Promise<unknown>
  readonly clock: Clock
}

/** The minimum pause. Jitter may reduce the pause to zero, which is too short for attempts in the background. */
const minPauseMs = 500

/** Keeps trying, in the background, to reconnect to a server that is down (T5). */
export function createReconnector({ down, pauseMs, wanted, attempt, clock }: ReconnectorOptions) {
  let timer: Disposable | undefined
  let over = false

  const probe = (): void => {
    timer = undefined
    // Stop if the server has been reached in the meantime or is not in use; the next call tries again.
    if (over || !down() || !wanted()) return
    if (pauseMs() > 0) schedule()
    // If another attempt is under way, `attempt` waits for its outcome.
    else
      attempt().catch(() => {
        if (!timer && down()) schedule()
      })
  }

  const schedule = (): void => {
    timer?.[Symbol.dispose]()
    timer = over ? undefined : clock.after(Math.max(pauseMs(), minPauseMs), probe)
  }

  return {
    failed: schedule,
    [Symbol.dispose]() {
      over = true
      timer?.[Symbol.dispose]()
    },
  }
}

/** Waits for a turn to start a server. The turn lasts until the returned object is disposed of. */
export type StartQueue = (isCalled: () => boolean, signal: AbortSignal) => Promise<Disposable>

/** How long a start can keep others waiting. A longer one is not using the processor: it downloads, or hangs. */
const maxTurnMs = 10_000

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
    await waitFor(turn.promise, signal).catch((error) => {
      leave()
      throw error
    })
    timer = clock.after(maxTurnMs, leave)
    return { [Symbol.dispose]: leave }
  }
}
