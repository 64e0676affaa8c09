import type { Interceptor } from '../core/call.ts'
import type { Decide } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'

/** Lets through what policy allows. */
export const policy = (decide: Decide): Interceptor => {
  return (call, next) => {
    const decision = decide(call.caller, call.entry)
    if (decision.allowed) return next(call)
    const { code, rule, reason } = decision
    return Promise.reject(new ToolwayError(code, reason, { rule, server: call.entry.server }))
  }
}
