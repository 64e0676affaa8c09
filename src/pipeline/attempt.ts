import type { Call, Handler, TrailStep } from '../core/call.ts'
import { endWith } from '../core/deadline.ts'
import { errorCodeOf } from '../core/outcome.ts'
import type { Watch } from './observe.ts'

/** Gives back what a step took. `failure` is set unless the attempt was answered. */
export type LeaveStep = (failure: AttemptFailure | undefined) => void

interface AttemptFailure {
  readonly thrown: unknown
}

/** Takes what an attempt needs, or throws to refuse it. Returns a promise only if the call has to wait. */
export type AttemptStep = (call: Call) => LeaveStep | undefined | Promise<LeaveStep | undefined>

/**
 * One attempt: passes the steps in their order, sends the call, and leaves the steps in reverse. A handler that ignores
 * the signal keeps nothing after the call has ended.
 */
export const attemptInSteps =
  ({ tracing }: Partial<Pick<Watch, 'tracing' | 'observers'>>, steps: readonly AttemptStep[], send: Handler): Handler =>
  async (asked) => {
    const observed = asked.trail !== undefined && !asked.entry.traits.carries
    const trace = observed ? tracing?.attempt(asked) : undefined
    const call = trace ? { ...asked, trace } : asked
    const noted: TrailStep | undefined = observed
      ? { name: 'attempt', start: performance.now(), ...(trace && { trace }) }
      : undefined
    // Before the attempt starts, so that its inner steps come after it.
    if (noted) call.trail?.steps.push(noted)
    const leaving: LeaveStep[] = []
    let failure: AttemptFailure | undefined
    try {
      for (const step of steps) {
        const entered = step(call)
        const leave = entered instanceof Promise ? await entered : entered
        if (leave) leaving.push(leave)
      }
      // It may have been cancelled while it waited for a step.
      if (call.signal.aborted) throw call.signal.reason
      return await endWith(call.signal, send(call))
    } catch (thrown) {
      failure = { thrown }
      if (noted) noted.error = errorCodeOf(thrown)
      throw thrown
    } finally {
      for (let last = leaving.length - 1; last >= 0; last--) leaving[last]?.(failure)
      if (noted) noted.end = performance.now()
    }
  }
