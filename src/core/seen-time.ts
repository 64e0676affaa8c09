import type { Clock } from './clock.ts'

export interface SeenTime {
  /** A longer time without any record counts as this long. */
  readonly maxGapMs: number
  /**
   * The time before which records are older than `ageMs`. `times` are the times of records, the newest first; there need
   * not be more than one in `maxGapMs`.
   */
  before(ageMs: number, times: Iterable<number>): number
}

/**
 * Tells how old records are, so that a wrong clock does not delete them: only time counts that this process or the
 * records themselves have seen. A clock that jumps ahead by years ages the records by no more than a tenth of `keepMs`.
 * `leastGapMs` is how far apart the times of records may be although nothing is missing.
 */
export function createSeenTime(clock: Pick<Clock, 'now' | 'monotonic'>, keepMs: number, leastGapMs: number): SeenTime {
  const maxGapMs = Math.ceil(Math.max(keepMs / 10, leastGapMs))
  let since = { wall: clock.now(), monotonic: clock.monotonic() }

  /** How long the wall clock has gone at the right speed. */
  const steadyMs = (now: number): number => {
    const elapsedMs = clock.monotonic() - since.monotonic
    if (Math.abs(now - since.wall - elapsedMs) <= maxGapMs) return elapsedMs
    since = { wall: now, monotonic: clock.monotonic() }
    return 0
  }

  return {
    maxGapMs,
    before(ageMs, times) {
      const now = clock.now()
      let seenMs = steadyMs(now)
      let from = now - seenMs
      for (const time of times) {
        if (seenMs >= ageMs) break
        // Also a time in the future, of a clock that was wrong.
        if (time >= from) continue
        const gapMs = Math.min(from - time, maxGapMs)
        if (seenMs + gapMs >= ageMs) break
        seenMs += gapMs
        from = time
      }
      return from - (ageMs - seenMs)
    },
  }
}
