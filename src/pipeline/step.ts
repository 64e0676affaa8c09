import type { Step, Trail } from '../core/trail.ts'
import { codeOf } from './outcome.ts'

/** Notes in a call's trail how long something takes that has just begun; where nobody watches, it is only awaited. */
export function step<T>(trail: Trail | undefined, name: Step['name'], work: Promise<T>): Promise<T> {
  if (trail === undefined) return work
  const noted: Step = { name, start: performance.now() }
  trail.steps.push(noted)
  return timed(noted, work)
}

/** Notes when the work ends that a step is about, and how. */
export async function timed<T>(step: Step, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (thrown) {
    step.error = codeOf(thrown)
    throw thrown
  } finally {
    step.end = performance.now()
  }
}
