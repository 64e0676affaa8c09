import type { Access } from '../core/access.ts'
import type { Call, Interceptor } from '../core/call.ts'
import { type Decision, type Denial, refusalOf } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'

export type RefuseCall = (call: Call, denial: Denial) => Promise<never>

/** Throws the reason or, if denials are hidden, the error for an entry that does not exist. */
export const refuseBy =
  (view: Access['view'], hideDenied: boolean): RefuseCall =>
  async ({ caller, entry }, denial) => {
    const refusal = refusalOf(denial, entry.server)
    if (!hideDenied) throw refusal
    const missing = await view(caller)
      .find(entry.kind, entry.server, entry.name)
      .catch((thrown: unknown) => thrown)
    throw missing instanceof ToolwayError ? missing.concealing(refusal) : refusal
  }

/** The current decision; undefined while the policy that already decided is still in force. */
export type Recheck = (call: Call) => Decision | undefined

/** A call can wait long for approval or in a queue. Check again before sending that it is still allowed. */
export const recheck =
  (decideNow: Recheck, refuse: RefuseCall): Interceptor =>
  (call, next) => {
    const decision = decideNow(call)
    return decision === undefined || decision.allowed ? next(call) : refuse(call, decision)
  }
