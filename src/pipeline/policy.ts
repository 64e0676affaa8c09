import type { Caller, Interceptor } from '../core/call.ts'
import type { Decide } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'

/** Lets through what policy allows. */
export const policy = (decide: Decide): Interceptor => {
  return async (call, next) => {
    allow(decide, call.caller, call.entry)
    return next(call)
  }
}

/** Throws what a denial means to whoever is refused. */
export function allow(decide: Decide, caller: Caller, entry: Entry): void {
  const decision = decide(caller, entry)
  if (decision.allowed) return
  const { code, rule, reason } = decision
  throw new ToolwayError(code, reason, { rule, server: entry.server })
}
