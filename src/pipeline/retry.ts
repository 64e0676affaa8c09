import type { Config } from '../config/schema.ts'
import type { Call, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import { backoffMs } from '../lib/backoff.ts'

export interface RetryOptions extends Readonly<Config['retry']> {
  readonly clock: Clock
  random?(): number
}

/** However often it doubles, nobody waits longer between two attempts, unless the first pause may be longer. */
const maxPauseMs = 10_000

/** Sends again what failed and may be repeated (F12), after a pause, within the time of the call and a budget. */
export function retry({ attempts, budget: share, backoff, clock, random = Math.random }: RetryOptions): Interceptor {
  const budgets = new Map<string, Budget>()
  const budgetOf = (server: string): Budget => {
    let budget = budgets.get(server)
    if (!budget) {
      budget = createBudget(share, clock)
      budgets.set(server, budget)
    }
    return budget
  }
  const pauses = { firstMs: backoff, maxMs: Math.max(backoff, maxPauseMs) }

  /** A random part of what the pause may be at most: those who failed together do not come back together. */
  const pauseBefore = (retries: number, error: ToolwayError): number | undefined => {
    const most = backoffMs(retries, pauses)
    const { retryAfterMs = 0 } = error.details
    // Before then it would be in vain, and after that it is for the caller to decide.
    return retryAfterMs > most ? undefined : Math.max(Math.round(most * random()), retryAfterMs)
  }

  return async (call, next) => {
    if (attempts === 0 || call.entry.traits.carries) return next(call)
    const budget = budgetOf(call.entry.server)
    budget.earn()
    const start = clock.monotonic()
    let mayHaveRun = false
    for (let tried = 1; ; tried++) {
      try {
        return await next(call)
      } catch (thrown) {
        const ms = tried <= attempts && isRepeatable(thrown, call) ? pauseBefore(tried - 1, thrown) : undefined
        const inTime = ms !== undefined && clock.monotonic() - start + ms < timeOf(call)
        if (!inTime || !budget.spend()) throw call.signal.aborted ? thrown : told(thrown, tried, mayHaveRun)
        if (!(thrown as ToolwayError).details.unsent) mayHaveRun = true
        await pause(ms, { clock, signal: call.signal })
      }
    }
  }
}

const timeOf = ({ timeoutMs, entry }: Call): number => timeoutMs ?? entry.traits.timeoutMs

/** The last failure, with what the caller cannot know of those before it. A server's own error stays as it is (T2). */
function told(thrown: unknown, tried: number, mayHaveRun: boolean): unknown {
  if (tried === 1 || !(thrown instanceof ToolwayError)) return thrown
  const { code, message, details } = thrown
  const before = mayHaveRun && code !== 'OUTCOME_UNKNOWN' ? ', and an earlier attempt may have run' : ''
  const { unsent, ...others } = details
  return new ToolwayError(code, `${message} Toolway tried ${tried} times${before}.`, {
    ...others,
    ...(unsent && !mayHaveRun && { unsent }),
    cause: thrown,
  })
}

/** How many retries there may be: a share of the calls, so that retries never multiply an outage (F12). */
interface Budget {
  /** A call begins, and brings its share. */
  earn(): void
  /** Whether one more retry may be made; it is counted if so. */
  spend(): boolean
}

/** What a server has without having earned it, so that one who is seldom called can be called again, too. */
const reserve = 3
/** How long it takes until one of the reserve is there again. */
const regainMs = 10_000
/** What can be saved up: when a line breaks, all calls that were under way on it fail at once. */
const most = 20

export function createBudget(share: number, clock: Clock): Budget {
  // Who wants no retries at all gets none from the reserve either.
  const free = share > 0 ? reserve : 0
  let left = free
  let spentAt = clock.monotonic()

  /** Brings back what time has brought of the reserve. */
  const regain = () => {
    const now = clock.monotonic()
    if (left < free) left = Math.min(left + Math.max(now - spentAt, 0) / regainMs, free)
    spentAt = now
  }

  return {
    earn() {
      left = Math.min(left + share, most)
    },
    spend() {
      regain()
      if (left < 1) return false
      left--
      return true
    },
  }
}

/** Lets time pass; throws the signal's reason as soon as it aborts. */
async function pause(ms: number, { clock, signal }: { clock: Clock; signal: AbortSignal }): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  using _ = clock.after(ms, resolve)
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/**
 * Whether a call may be sent once more (F12): surely nothing of it reached the server, or the operator says that twice
 * does no harm. A call that timed out has no time left. What our own breaker or bulkhead held back is not repeated
 * either: both say when to come back, later than a retry would, and pressing on is what they stand against.
 */
function isRepeatable(thrown: unknown, { entry, signal }: Call): thrown is ToolwayError {
  if (!(thrown instanceof ToolwayError) || signal.aborted) return false
  const { code, details } = thrown
  // What a call inside this one came to was repeated there, or must not be.
  if (entry.traits.carries || (details.server ?? entry.server) !== entry.server) return false
  if (never.has(code)) return false
  if (details.unsent) return true
  // It was resent in a new session already, where that is safe.
  if (details.sessionEnded) return false
  const harmless = entry.traits.idempotent || entry.traits.readOnly
  return harmless && (code === 'SERVER_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN')
}

const never: ReadonlySet<string> = new Set(['TIMEOUT', 'CANCELLED', 'CIRCUIT_OPEN', 'OVERLOADED'])
