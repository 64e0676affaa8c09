import type { Operation } from '../core/audit.ts'
import { type Interceptor, type Trail, type TrailStep, waitedMs } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { ServerError, ToolwayError } from '../core/errors.ts'
import type { CallOutcome, Observer, Tracing } from '../core/observer.ts'
import type { Result } from '../core/result.ts'
import { operations } from './audit-and-decide.ts'

export interface Watch {
  readonly observers: readonly Observer[]
  readonly tracing?: Tracing | undefined
  readonly clock: Clock
}

/** Times a call and reports its outcome. Without observers there is no interceptor, so calls cost nothing extra. */
export function observe({ observers, tracing, clock }: Watch, operation?: Operation): Interceptor[] {
  if (observers.length === 0) return []
  return [
    async (call, next) => {
      const performed = operation ?? operations[call.entry.kind]
      const trace = tracing?.enter(call)
      const trail: Trail = trace ? { steps: [], trace } : { steps: [] }
      if (call.trail) trail.outer = call.trail
      const at = clock.now()
      const start = performance.now()
      let outcome = unknown
      const watched = trace ? { ...call, trail, trace } : { ...call, trail }
      for (const observer of observers) observer.began?.(watched, performed)
      try {
        const result = await next(watched)
        outcome = outcomeOf(result)
        return result
      } catch (thrown) {
        outcome = failureOf(thrown)
        throw thrown
      } finally {
        const end = performance.now()
        const ms = end - start - waitedMs(trail, end)
        const observed = { call, operation: performed, at, start, end, ms, outcome, trail }
        for (const observer of observers) observer.ended(observed)
      }
    },
  ]
}

/** Records each attempt, so it must come after `retry`. Calls that carry others record none; their inner calls do. */
export function attempt({ observers, tracing }: Watch): Interceptor[] {
  if (observers.length === 0) return []
  return [
    (call, next) => {
      const { trail } = call
      if (trail === undefined || call.entry.traits.carries) return next(call)
      const trace = tracing?.attempt(call)
      const step: TrailStep = { name: 'attempt', start: performance.now(), ...(trace && { trace }) }
      // Push the step before the attempt starts, so that the attempt's inner steps come after it.
      trail.steps.push(step)
      return timed(step, next(trace ? { ...call, trace } : call))
    },
  ]
}

const unknown: CallOutcome = { kind: 'failed' }

const answered: CallOutcome = { kind: 'answered' }
const toolError: CallOutcome = { kind: 'tool_error' }

/** The outcome of a call that returned a result, which can also be a refusal. */
const outcomeOf = ({ refusal, isError }: Result): CallOutcome =>
  refusal ? failureOf(refusal) : isError ? toolError : answered

function failureOf(thrown: unknown): CallOutcome {
  if (thrown instanceof ServerError) return { kind: 'failed', code: codeOf(thrown) }
  const error = ToolwayError.from(thrown)
  return { kind: error.isDenial ? 'denied' : 'failed', code: error.truth.code }
}

/** An error's code: our own code, or "rpc" and the number of the server's JSON-RPC error. */
function codeOf(thrown: unknown): string {
  if (!(thrown instanceof ServerError)) return ToolwayError.from(thrown).truth.code
  const code: unknown = thrown.error.value?.code
  return `rpc ${typeof code === 'number' ? code : 'unknown'}`
}

export function step<T>(trail: Trail | undefined, name: TrailStep['name'], work: Promise<T>): Promise<T> {
  if (trail === undefined) return work
  const noted: TrailStep = { name, start: performance.now() }
  trail.steps.push(noted)
  return timed(noted, work)
}

const maxAsks = 100

/** Waits for a person or the client: in this step, the call and those that made it have no latency. */
export async function waitStep<T>(trail: Trail | undefined, name: 'approve' | 'ask', work: Promise<T>): Promise<T> {
  const waiting: NonNullable<Trail['waits']>[] = []
  for (let one = trail; one; one = one.outer) {
    one.waits ??= { endedMs: 0, open: 0, since: 0 }
    if (one.waits.open++ === 0) one.waits.since = performance.now()
    waiting.push(one.waits)
  }
  try {
    // A server can ask any number of questions.
    return await step(trail && trail.steps.length < maxAsks ? trail : undefined, name, work)
  } finally {
    const now = performance.now()
    for (const waits of waiting) if (--waits.open === 0) waits.endedMs += now - waits.since
  }
}

async function timed<T>(step: TrailStep, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (thrown) {
    step.error = codeOf(thrown)
    throw thrown
  } finally {
    step.end = performance.now()
  }
}
