import type { Call, Interceptor } from '../core/call.ts'
import { type Decision, refusalOf } from '../core/decision.ts'

/** What policy says now; undefined while it is the policy that has decided already. */
export type Recheck = (call: Call) => Decision | undefined

/** A call may wait long, for a person or for a place: what is denied by then is not sent any more. */
export const recheck = (decideNow: Recheck): Interceptor => {
  return (call, next) => {
    const decision = decideNow(call)
    if (decision === undefined || decision.allowed) return next(call)
    return Promise.reject(refusalOf(decision, call.entry.server))
  }
}
