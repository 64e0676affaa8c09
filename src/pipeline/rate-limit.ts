import type { Call, CallCheck } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Buckets, Limit, LimitsOf, Taken } from '../core/stores.ts'
import { callAgain } from '../lib/duration.ts'

export interface RateLimits {
  readonly limitsOf: LimitsOf
  readonly buckets: Buckets
  readonly clock: Clock
}

/** Enforces all rate limits that apply to a call (F8); a refused call counts toward none of them. */
export const rateLimit = ({ limitsOf, buckets, clock }: RateLimits): CallCheck => {
  const check = (call: Call, limits: readonly Limit[], taken: Taken): void => {
    if (taken.allowed) return
    const limit = limits.find(({ key }) => key === taken.key) ?? (limits[0] as Limit)
    throw limited(call, limit, taken.retryAfterMs)
  }
  return (call) => {
    const limits = limitsOf(call.caller, call.entry)
    if (limits.length === 0) return undefined
    const taken = buckets.take(limits, clock.monotonic())
    if (taken instanceof Promise) return taken.then((later) => check(call, limits, later))
    check(call, limits, taken)
    return undefined
  }
}

function limited({ caller, entry }: Call, limit: Limit, retryAfterMs: number): ToolwayError {
  const { rule, perMinute, scope, perClient } = limit
  const calls = `${perMinute} ${perMinute === 1 ? 'call' : 'calls'} per minute${scope}`
  const whose = perClient ? 'This client' : `The agent ${caller.agent}`
  const sentence = `${whose} has reached its limit of ${calls} (${rule}); ${callAgain(retryAfterMs)}.`
  return new ToolwayError('RATE_LIMITED', sentence, { rule, server: entry.server, retryAfterMs })
}
