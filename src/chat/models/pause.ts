import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'

/** Waits for some time, unless the signal aborts first. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _timer = clock.after(ms, resolve)
  await waitFor(promise, signal)
}
