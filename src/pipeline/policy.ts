import type { Access } from '../core/access.ts'
import type { Call, Interceptor } from '../core/call.ts'
import { type Decision, type Denial, refusalOf } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'

/** What a caller is told whose call is denied. */
export type RefuseCall = (call: Call, denial: Denial) => Promise<never>

/** Says why; or, where denials are hidden, what is said of an entry that does not exist. */
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

/** What policy says now; undefined while it is the policy that has decided already. */
export type Recheck = (call: Call) => Decision | undefined

/** A call may wait long, for a person or for a place: what is denied by then is not sent any more. */
export const recheck = (decideNow: Recheck, refuse: RefuseCall): Interceptor => {
  return (call, next) => {
    const decision = decideNow(call)
    return decision === undefined || decision.allowed ? next(call) : refuse(call, decision)
  }
}
