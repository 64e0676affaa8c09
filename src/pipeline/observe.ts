import type { Operation } from '../core/audit.ts'
import { type Call, type Trail, type TrailStep, waitedMs } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import type { Observer, Tracing } from '../core/observer.ts'
import { type CallOutcome, errorCodeOf } from '../core/outcome.ts'

export interface Watch {
  readonly observers: readonly Observer[]
  readonly tracing?: Tracing | undefined
  readonly clock: Clock
}

/** A call under observation: what is known when it begins. */
export interface Observation {
  readonly asked: Call
  /** The same with a trail of its own. */
  readonly call: Call
  readonly operation: Operation
  readonly at: number
  readonly start: number
}

/** Tells the observers that a call begins; undefined without observers. */
export function beginObserved(watch: Watch, call: Call, operation: Operation): Observation | undefined {
  const { observers, tracing, clock } = watch
  if (observers.length === 0) return undefined
  const trace = tracing?.enter(call)
  const trail: Trail = trace ? { steps: [], trace } : { steps: [] }
  if (call.trail) trail.outer = call.trail
  const observed = trace ? { ...call, trail, trace } : { ...call, trail }
  for (const observer of observers) observer.began?.(observed, operation)
  return { asked: call, call: observed, operation, at: clock.now(), start: performance.now() }
}

/** Tells the observers how the call ended. */
export function endObserved({ observers }: Watch, observation: Observation, outcome: CallOutcome): void {
  const { asked: call, operation, at, start } = observation
  const { trail = { steps: [] } } = observation.call
  const end = performance.now()
  const observed = { call, operation, at, start, end, ms: end - start - waitedMs(trail, end), outcome, trail }
  for (const observer of observers) observer.ended(observed)
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
    step.error = errorCodeOf(thrown)
    throw thrown
  } finally {
    step.end = performance.now()
  }
}
