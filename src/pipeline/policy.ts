import type { Interceptor } from '../core/call.ts'
import { type Decide, refusalOf } from '../core/decision.ts'

/** Lets through what policy allows. */
export const policy = (decide: Decide): Interceptor => {
  return async (call, next) => {
    const decision = decide(call.caller, call.entry)
    if (!decision.allowed) throw refusalOf(decision, call.entry.server)
    return next(call)
  }
}
