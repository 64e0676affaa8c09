import type { Clock } from '../core/clock.ts'
import { waitFor } from '../core/deadline.ts'
import type { Child } from './child.ts'

/** A child that has come up before anybody needs it. Each is used once, and by one program or environment alone. */
export interface Spare extends AsyncDisposable {
  /** A child that is ready; rejects where none can be had, or when the signal aborts. */
  take(signal: AbortSignal): Promise<Child>
}

export function createSpare(options: {
  start(): Child
  readonly startMs: number
  readonly idleMs: number
  readonly clock: Clock
}): Spare {
  const { start, startMs, idleMs, clock } = options
  let waiting: Child | undefined
  let idle: Disposable | undefined
  let over = false

  const drop = async () => {
    idle?.[Symbol.dispose]()
    const dropped = waiting
    waiting = undefined
    await dropped?.kill()
  }

  const refill = () => {
    if (over || waiting) return
    const child = start()
    waiting = child
    idle = clock.after(idleMs, () => void drop())
    void child.ended.then(() => {
      if (waiting === child) void drop()
    })
  }

  return {
    async take(signal) {
      idle?.[Symbol.dispose]()
      const child = waiting ?? start()
      waiting = undefined
      await up(child, startMs, clock, signal)
      // After the program has been handed over: starting a process takes a moment.
      setImmediate(refill)
      return child
    },
    [Symbol.asyncDispose]() {
      over = true
      return drop()
    },
  }
}

/** Waits until a child is ready, but not for ever. */
async function up(child: Child, startMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = clock.after(startMs, () =>
    reject(new Error(`it did not come up within ${startMs / 1000} s (a fixed limit)`)),
  )
  try {
    await waitFor(Promise.race([child.ready, promise]), signal)
  } catch (error) {
    void child.kill()
    throw error
  } finally {
    timer[Symbol.dispose]()
  }
}
