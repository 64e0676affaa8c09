import type { Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { deadline, waitFor } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'

/** Ends a call at its deadline (F10), also when whatever runs it does not listen to the signal. */
export const timeout = (clock: Clock): Interceptor => {
  return async (call, next) => {
    const ms = call.timeoutMs ?? call.entry.traits.timeoutMs
    const tooLate = () => {
      const sentence = `${call.entry.server}.${call.entry.name} did not answer within ${ms} ms and was cancelled.`
      return new ToolwayError('TIMEOUT', sentence, { server: call.entry.server })
    }
    using limit = deadline(clock, ms, tooLate, call.signal)
    return await waitFor(next({ ...call, signal: limit.signal }), limit.signal)
  }
}
