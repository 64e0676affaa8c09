import type { Clock } from './clock.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
}

/** A signal that aborts with `reason()` after `ms`, or with its parent's reason before that. Dispose of it when done. */
export function deadline(clock: Clock, ms: number, reason: () => Error, parent?: AbortSignal): Deadline {
  const controller = new AbortController()
  const abort = () => controller.abort(parent?.reason)
  if (parent?.aborted) abort()
  parent?.addEventListener('abort', abort, { once: true })
  const timer = clock.after(ms, () => controller.abort(reason()))
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]()
      parent?.removeEventListener('abort', abort)
    },
  }
}

/** Waits for shared work on behalf of one waiter: its signal ends the waiting, never the work. */
export async function waitFor<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw signal.reason
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
