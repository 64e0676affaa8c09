import type { Clock } from '../core/clock.ts'
import type { ToolwayError } from '../core/errors.ts'

/** How long a server that could not be reached is left alone; one for all lines to it. */
export interface Backoff {
  /** Why it could not be reached, until it can be. */
  readonly failure: ToolwayError | undefined
  /** How long it is still left alone; not at all if zero. */
  readonly pauseMs: number
  failed(error: ToolwayError): void
  succeeded(): void
}

const firstPauseMs = 1_000
const longestPauseMs = 30_000

export function createBackoff(clock: Clock): Backoff {
  let failure: ToolwayError | undefined
  let failures = 0
  let retryAt = 0
  return {
    get failure() {
      return failure
    },
    get pauseMs() {
      return failure ? Math.max(0, retryAt - clock.now()) : 0
    },
    failed(error) {
      failure = error
      retryAt = clock.now() + Math.min(firstPauseMs * 2 ** failures++, longestPauseMs)
    },
    succeeded() {
      failure = undefined
      failures = 0
    },
  }
}
