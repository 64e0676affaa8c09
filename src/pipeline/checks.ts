import type { Call, CallCheck } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Definition, Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Buckets, Limit, LimitsOf, Taken } from '../core/stores.ts'
import { callAgain } from '../lib/duration.ts'

/** Throws if the arguments do not match the schema; returns a promise only if the check is asynchronous. */
export type Validate = (
  schema: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: string,
  exact?: Readonly<Record<string, unknown>>,
) => Promise<void> | undefined

/** Validates a tool's arguments against its schema before anything is sent (F9), after the call's own `admit` check. */
export const validate =
  (check: Validate): CallCheck =>
  (call) => {
    call.admit?.()
    const { kind, definition, checksItself, exactSchema, server, name, override } = call.entry
    if (kind !== 'tool' || checksItself || !definition.inputSchema) return undefined
    const { value, exact } = call.input.arguments
    override?.check(value)
    return check(exactSchema ?? definition.inputSchema, value, `${server}.${override?.name ?? name}`, exact)
  }

/** Throws if it finds a forbidden path, SQL statement or URL; returns a promise only if the check is asynchronous. */
export type GuardCheck = (
  args: Readonly<Record<string, unknown>>,
  uri: string | undefined,
  definition: Definition,
) => Promise<void> | undefined

export type ServerGuards = ReadonlyMap<string, GuardCheck>

/** Checks the arguments of tools and prompts, and the URIs of resources, against the server's guards (F9). */
export const guards =
  (checks: () => ServerGuards | undefined): CallCheck =>
  ({ entry, input }) =>
    checks()?.get(entry.server)?.(input.arguments.value, uriOf(entry, input), entry.definition)

const uriOf = ({ kind, name }: Entry, { uri }: Call['input']): string | undefined =>
  uri ?? (kind === 'resource' ? name : undefined)

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
