import type { Config } from '../config/schema.ts'
import { type Call, type Handler, type Interceptor, wrapPeer } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, endWith, pause } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Result } from '../core/result.ts'
import { backoffMs } from '../lib/duration.ts'
import { timeOf } from './timeout.ts'

export interface RetryOptions extends Readonly<Config['retry']> {
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** Upper bound of the backoff, unless the configured first pause is longer. */
const maxPauseMs = 10_000

/** Retries failed calls that are safe to repeat (F12), with backoff, within the call's timeout and a retry budget. */
export function retry(options: RetryOptions): Interceptor {
  const { attempts, budget: share, backoff, onTimeout, clock, log, random = Math.random } = options
  const budgets = new Map<string, ReturnType<typeof createBudget>>()
  const budgetOf = (server: string) => {
    let budget = budgets.get(server)
    if (!budget) {
      budget = createBudget(share, clock)
      budgets.set(server, budget)
    }
    return budget
  }
  const pauses = { firstMs: backoff, maxMs: Math.max(backoff, maxPauseMs) }

  /** The pause before the next retry; undefined for no retry. Full jitter spreads out calls that failed together. */
  const pauseBefore = (retries: number, error: ToolwayError): number | undefined => {
    const maxMs = backoffMs(retries, pauses)
    const { retryAfterMs = 0 } = error.details
    // If the server asks for a longer pause than our maximum, leave the retry to the caller.
    return retryAfterMs > maxMs ? undefined : Math.max(Math.round(maxMs * random()), retryAfterMs)
  }

  /** Goes on after an attempt has failed. */
  const tryAgain = async (call: Call, next: Handler, start: number, first: unknown): Promise<Result> => {
    const budget = budgetOf(call.entry.server)
    let mayHaveRun = false
    let thrown = first
    for (let tried = 1; ; tried++) {
      const hasHalf = thrown instanceof HalfTimeError
      const pauseMs = hasHalf ? 0 : isRepeatable(thrown, call) ? pauseBefore(tried - 1, thrown) : undefined
      const mayTry = tried <= attempts && pauseMs !== undefined && clock.monotonic() - start + pauseMs < timeOf(call)
      if (!mayTry || !(budget.spend() || hasHalf))
        throw call.signal.aborted ? thrown : withAttempts(thrown, tried, mayHaveRun, call)
      if (!(thrown as ToolwayError).details.unsent) mayHaveRun = true
      await pause(clock, pauseMs, call.signal)
      const { code } = thrown as ToolwayError
      log.warn({ call: call.id, server: call.entry.server, error: code }, 'call failed; retrying it')
      try {
        return await next(hasHalf ? { ...call, earlierMs: timeOf(call) / 2 } : call)
      } catch (again) {
        thrown = again
      }
    }
  }

  return (call, next) => {
    if (attempts === 0 || call.entry.traits.carries) return next(call)
    const budget = budgetOf(call.entry.server)
    budget.earn()
    const start = clock.monotonic()
    const attempt = onTimeout && isHarmless(call) && budget.hasLeft() ? halfTime(next, clock) : next
    return attempt(call).catch((thrown: unknown) => tryAgain(call, next, start, thrown))
  }
}

/** The first attempt had half of the call's time. */
class HalfTimeError extends ToolwayError {}

/**
 * Gives an attempt half of the call's time (`retry.onTimeout`), not counting the time in queues, so that another one
 * fits in. A server that reports progress or asks the caller something is alive and keeps the whole time.
 */
const halfTime =
  (next: Handler, clock: Clock): Handler =>
  async (call): Promise<Result> => {
    const { entry, peer } = call
    const tooLate = () =>
      new HalfTimeError('TIMEOUT', `${entry.server}.${entry.name} did not answer.`, { server: entry.server })
    using limit = deadline(clock, timeOf(call) / 2, tooLate, call.signal)
    const queued = limit.pause()
    const starting = () => {
      queued[Symbol.dispose]()
      call.starting?.()
    }
    const progressed = () => {
      limit.pause()
      call.progressed?.()
    }
    const ask: typeof peer.ask = (...request) => {
      limit.pause()
      return peer.ask(...request)
    }
    const { signal } = limit
    return await endWith(signal, next({ ...call, signal, starting, progressed, peer: wrapPeer(peer, { ask }) }))
  }

/**
 * Mentions earlier attempts in the error message. A server's own error stays unchanged (T2), and so does "not found"
 * for a tool that the policy hides: attempts would show that it exists.
 */
function withAttempts(thrown: unknown, tried: number, mayHaveRun: boolean, { entry }: Call): unknown {
  if (tried === 1 || !(thrown instanceof ToolwayError)) return thrown
  const { code, message, details } = thrown
  if (details.concealed) return thrown
  const mayHaveEffect = mayHaveRun && entry.kind === 'tool' && !entry.traits.readOnly
  const before = mayHaveEffect && code !== 'OUTCOME_UNKNOWN' ? ', and an earlier one may have run' : ''
  const unsent = mayHaveRun ? undefined : details.unsent
  const sentence = `${message} Toolway made ${tried} attempts${before}.`
  return new ToolwayError(code, sentence, { ...details, unsent, cause: thrown })
}

/** Retries that are granted without earlier calls, so that rarely called servers also get retries. */
const reserve = 3
/** The time it takes to restore one retry to the reserve. */
const regainMs = 10_000
/** Maximum number of saved retries. It is enough for a lost connection, where all calls in flight fail at once. */
const maxSaved = 20

/** Allows retries as a share of the calls, so that retries do not amplify an outage (F12). */
export function createBudget(share: number, clock: Clock) {
  // A share of 0 disables retries, including the reserve.
  const free = share > 0 ? reserve : 0
  let left = free
  let spentAt = clock.monotonic()

  const regain = () => {
    const now = clock.monotonic()
    if (left < free) left = Math.min(left + Math.max(now - spentAt, 0) / regainMs, free)
    spentAt = now
  }

  return {
    earn(): void {
      left = Math.min(left + share, maxSaved)
    },
    hasLeft(): boolean {
      regain()
      return left >= 1
    },
    spend(): boolean {
      if (!this.hasLeft()) return false
      left--
      return true
    },
  }
}

/**
 * Whether a call may be repeated (F12): nothing reached the server, or the tool is marked as safe to repeat. Calls that
 * used up their whole time are not repeated. Neither are calls stopped by our breaker or bulkhead:
 * their errors say when to retry, and an immediate retry would defeat the purpose of the breaker or bulkhead.
 */
function isRepeatable(thrown: unknown, call: Call): thrown is ToolwayError {
  const { entry, signal } = call
  if (!(thrown instanceof ToolwayError) || signal.aborted) return false
  const { code, details } = thrown
  // The failure comes from an inner call, which has its own retries.
  if (entry.traits.carries || (details.server ?? entry.server) !== entry.server) return false
  if (never.has(code) || details.requestOnly) return false
  if (details.unsent) return true
  // If the call could safely be resent in a new session, that has already happened.
  if (details.sessionEnded) return false
  return isHarmless(call) && (code === 'SERVER_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN')
}

const isHarmless = ({ entry: { traits } }: Call): boolean => traits.idempotent || traits.readOnly

const never: ReadonlySet<string> = new Set(['TIMEOUT', 'CANCELLED', 'CIRCUIT_OPEN', 'OVERLOADED'])
