import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf } from '../core/call.fixture.ts'
import type { Call } from '../core/call.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { type Result, textResult } from '../core/result.ts'
import { type BreakerConfig, type BreakersOptions, createBreakers } from './breaker.ts'
import { attemptOf } from './pipeline.fixture.ts'

export const usual: BreakerConfig = {
  failures: 3,
  rate: 0.5,
  minimumCalls: 10,
  window: 10_000,
  openFor: 1_000,
  halfOpenCalls: 1,
}

/** A call that has been let through, and ends when the test says so. */
export interface Running {
  /** False where it was held back. */
  readonly sent: boolean
  readonly answer: Promise<Result>
  end(how: Result | Error): Promise<void>
}

/** Breakers by a clock of the test, and calls whose ends are in its hand. */
export function breakersOf(config: Partial<BreakerConfig> = {}, changes: Partial<BreakersOptions> = {}) {
  const clock = createManualClock()
  const configOf = (server: string) => (server === 'native' ? undefined : { ...usual, ...config })
  const breakers = createBreakers({ configOf, clock, log: silentLog, random: () => 0, ...changes })

  const begin = (call: Call = callOf()): Running => {
    const outcome = Promise.withResolvers<Result>()
    let sent = false
    const answer = attemptOf(breakers.step)(call, () => {
      sent = true
      return outcome.promise
    })
    answer.catch(() => {})
    return {
      sent,
      answer,
      async end(how) {
        if (how instanceof Error) outcome.reject(how)
        else outcome.resolve(how)
        await answer.catch(() => {})
      },
    }
  }
  /** Runs a whole call and returns its result or error. */
  const run = async (how: Result | Error, call?: Call) => {
    const running = begin(call)
    await running.end(how)
    return running.answer.catch((error: Error) => error)
  }
  return { ...breakers, clock, begin, run, state: () => breakers.stateOf('files') }
}

export const fine = textResult('fine')
export const down = new ToolwayError('SERVER_UNAVAILABLE', 'Down.')

/** So many calls that fail, one after the other. */
export const failing = async (breakers: ReturnType<typeof breakersOf>, times: number) => {
  for (let count = 0; count < times; count++) await breakers.run(down)
}
