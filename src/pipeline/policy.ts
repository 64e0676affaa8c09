import type { Interceptor } from '../core/call.ts'
import { type Decide, refusalOf } from '../core/decision.ts'

/** Lets through what policy allows. */
export const policy = (decide: Decide): Interceptor => {
  return (call, next) => {
    const decision = decide(call.caller, call.entry)
    return decision.allowed ? next(call) : Promise.reject(refusalOf(decision, call.entry.server))
  }
}
