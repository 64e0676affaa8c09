import type { Clock } from '../../core/clock.ts'

/** Waits this long, or until the signal aborts; which of the two is for the signal to say. */
export function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = () => {
      timer[Symbol.dispose]()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.after(ms, done)
    signal.addEventListener('abort', done, { once: true })
  })
}

/** Whether a promise settles, either way, within this time. */
export function settles(promise: PromiseLike<unknown>, ms: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(false))
    const done = () => {
      timer[Symbol.dispose]()
      resolve(true)
    }
    promise.then(done, done)
  })
}
