import type { Call, Interceptor } from '../core/call.ts'
import type { Decision } from '../core/decision.ts'
import type { Refuse } from './policy.ts'

/** What policy says now; undefined while it is the policy that has decided already. */
export type Recheck = (call: Call) => Decision | undefined

/** A call may wait long, for a person or for a place: what is denied by then is not sent any more. */
export const recheck = (decideNow: Recheck, refuse: Refuse): Interceptor => {
  return (call, next) => {
    const decision = decideNow(call)
    return decision === undefined || decision.allowed ? next(call) : refuse(call, decision)
  }
}
