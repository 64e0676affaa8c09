import type { Access } from '../core/access.ts'
import type { Call, Handler, Interceptor } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { compose } from '../core/compose.ts'
import type { Decide } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Result, resultOf } from '../core/result.ts'
import { allow, policy } from './policy.ts'
import { record } from './record.ts'
import { timeout } from './timeout.ts'

export interface PipelineOptions {
  readonly decide: Decide
  readonly clock: Clock
  readonly log: Log
}

/** The ways in that end at an entry. */
export type Pipeline = Pick<Access, 'handle' | 'complete' | 'relay' | 'subscribe'>

/**
 * The order is the architecture, written once. The first row runs once per call, the second once per attempt:
 * whatever repeats an attempt stands between them. What is not a call meets the same decision.
 */
export function createPipeline({ decide, clock, log }: PipelineOptions): Pipeline {
  const perCall: Interceptor[] = [record(log), policy(decide)]
  const perAttempt: Interceptor[] = [timeout(clock)]
  const row = (last: Handler): Handler => compose([...perCall, ...perAttempt], last)

  const handle = row((call) => call.entry.run(call))
  const complete = row((call) => call.entry.complete?.(call) ?? Promise.resolve(noCompletions))
  return {
    handle,
    complete,
    relay: (method, call) => row((allowed) => relayed(method, allowed))(call),
    async subscribe(caller, { entry, uri = entry.name }, updated) {
      allow(decide, caller, entry)
      return (await entry.subscribe?.(caller, uri, updated)) ?? nothingToFollow
    },
  }
}

function relayed(method: string, call: Call): Promise<Result> {
  const { entry } = call
  if (entry.relay) return entry.relay(method, call)
  const sentence = `${entry.server}.${entry.name} has started nothing that ${method} could be about.`
  return Promise.reject(new ToolwayError('INVALID_ARGUMENTS', sentence, { server: entry.server }))
}

const noCompletions = resultOf({ completion: { values: [], total: 0, hasMore: false } })

/** A source that never tells of changes is followed in vain, which is no error. */
const nothingToFollow: AsyncDisposable = { async [Symbol.asyncDispose]() {} }
