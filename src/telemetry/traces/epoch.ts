import type { Clock } from '../../core/clock.ts'

/** More than this the two clocks do not drift apart unless somebody has set one of them. */
const driftMs = 2

/**
 * How far the monotonic clock is from the epoch. The same for all calls, so that what happened one after the other is
 * seen so; found anew where the time of day has been set.
 */
export function createEpoch(clock: Clock): (at: number, start: number) => number {
  let offset = clock.now() - performance.now()
  return (at, start) => {
    if (Math.abs(offset + start - at) > driftMs) offset = clock.now() - performance.now()
    return offset
  }
}
