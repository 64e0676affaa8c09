import type { Clock } from '../core/clock.ts'
import { backoffMs } from '../lib/backoff.ts'

/** How soon something may be done again that others can ask for as often as they like. */
export interface Pace {
  /** How long to wait with the next one: pauses are ever longer where one follows the other, until all is quiet. */
  next(): number
  /** It was done. */
  done(): void
}

/** So many may follow each other at once: changes come in twos and threes. */
const atOnce = 2
const firstPauseMs = 100
const maxPauseMs = 30_000
/** After so many pauses without any, all is quiet again. */
const quietPauses = 10

export function createPace(clock: Clock): Pace {
  let inARow = 0
  let doneAt = Number.NEGATIVE_INFINITY

  const pauseMs = (): number =>
    inARow <= atOnce ? 0 : backoffMs(inARow - atOnce - 1, { firstMs: firstPauseMs, maxMs: maxPauseMs })

  return {
    next() {
      const sinceMs = clock.monotonic() - doneAt
      const isQuiet = sinceMs > quietPauses * Math.max(pauseMs(), firstPauseMs)
      inARow = isQuiet ? 0 : inARow + 1
      return Math.max(0, pauseMs() - sinceMs)
    },
    done() {
      doneAt = clock.monotonic()
    },
  }
}
