import { type Clock, pausedMs, type Timer } from './clock.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
  /** Pauses this deadline until the returned object is disposed of. Pauses may overlap. */
  pause(): Disposable
  /** Restarts the full time from now, but the total may not exceed `maxMs`. Paused time does not count. */
  restart(maxMs: number): void
}

/**
 * A signal that aborts with `reason(late)` after `ms`, or earlier with its parent's reason. Dispose of it when done.
 * `late` means that the process was paused when the time ran out, so the other side may have had less time.
 */
export function deadline(clock: Clock, ms: number, reason: (late: boolean) => Error, parent?: AbortSignal): Deadline {
  const controller = new AbortController()
  const abort = () => controller.abort(parent?.reason)
  if (parent?.aborted) abort()
  parent?.addEventListener('abort', abort, { once: true })
  const start = (left: number): Timer =>
    clock.after(left, () => {
      const rest = due - clock.monotonic()
      // Wait again if the deadline was restarted. A restart only moves `due` and does not touch the timer, because
      // there can be thousands of restarts a second.
      if (isRestarted && rest > 0) timer = start(rest)
      else controller.abort(reason((timer.lateMs ?? 0) >= pausedMs))
    })
  let began = clock.monotonic()
  let due = began + ms
  let isRestarted = false
  let timer = start(ms)
  let pauses = 0
  let left = ms
  let over = false
  let pausedAt = 0
  return {
    signal: controller.signal,
    pause() {
      if (pauses++ > 0) return { [Symbol.dispose]: resume }
      timer[Symbol.dispose]()
      pausedAt = clock.monotonic()
      left = due - pausedAt
      return { [Symbol.dispose]: resume }
    },
    restart(maxMs) {
      const now = clock.monotonic()
      const end = Math.min(now + ms, began + maxMs)
      if (pauses > 0) left = Math.max(left, end - now)
      else if (end > due) due = end
      isRestarted = true
    },
    [Symbol.dispose]() {
      over = true
      timer[Symbol.dispose]()
      parent?.removeEventListener('abort', abort)
    },
  }

  function resume(): void {
    if (--pauses > 0 || over) return
    const now = clock.monotonic()
    began += now - pausedAt
    due = now + left
    timer = start(left)
  }
}

/** Waits for `ms`. Rejects with the signal's reason if the signal aborts first. */
export async function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _timer = clock.after(ms, resolve)
  await (signal ? endWith(signal, promise) : promise)
}

/** Whether a promise resolves or rejects within this time. */
export async function settles(work: PromiseLike<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  using _timer = clock.after(ms, () => resolve(false))
  const done = () => resolve(true)
  work.then(done, done)
  return await promise
}

/** A signal that aborts with the given signal, but with `reason()` as its reason. Dispose of it when done. */
export function abortWith(
  signal: AbortSignal | undefined,
  reason: () => Error,
): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const abort = () => controller.abort(reason())
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, [Symbol.dispose]: () => signal?.removeEventListener('abort', abort) }
}

/** A signal that never aborts. */
export const never: AbortSignal = new AbortController().signal

/**
 * Waits for work, which others may be waiting for too, until the signal aborts. The signal ends the waiting, not the
 * work. Runs in every call, so it avoids `Promise.race`, which cost more than the rest of the function.
 */
export const endWith = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    const done = () => signal.removeEventListener('abort', stop)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
  })
