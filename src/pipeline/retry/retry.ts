import type { Config } from '../../config/schema.ts'
import type { Call, Interceptor } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { type Budget, createBudget } from './budget.ts'
import { pause } from './pause.ts'
import { isRepeatable } from './repeatable.ts'

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
