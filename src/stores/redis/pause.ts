import type { Clock } from '../../core/clock.ts'

/** Lets time pass. */
export function pause(clock: Clock, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  clock.after(ms, resolve)
  return promise
}
