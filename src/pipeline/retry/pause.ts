import type { Clock } from '../../core/clock.ts'

/** Lets time pass; throws the signal's reason as soon as it aborts. */
export async function pause(ms: number, { clock, signal }: { clock: Clock; signal: AbortSignal }): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  using _ = clock.after(ms, resolve)
  try {
    await promise
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
