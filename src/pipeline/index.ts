import type { Handler, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { compose } from '../core/compose.ts'
import type { Decide } from '../core/decision.ts'
import type { Log } from '../core/log.ts'
import { policy } from './policy.ts'
import { record } from './record.ts'
import { timeout } from './timeout.ts'

export interface PipelineOptions {
  readonly decide: Decide
  readonly clock: Clock
  readonly log: Log
}

/**
 * The order is the architecture, written once. The first row runs once per call, the second once per attempt:
 * whatever repeats an attempt stands between them.
 */
export function createPipeline({ decide, clock, log }: PipelineOptions, last: Handler): Handler {
  const perCall: Interceptor[] = [record(log), policy(decide)]
  const perAttempt: Interceptor[] = [timeout(clock)]
  return compose([...perCall, ...perAttempt], last)
}
