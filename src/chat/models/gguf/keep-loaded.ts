import type { Clock } from '../../../core/clock.ts'

interface Loaded {
  dispose(): Promise<void>
}

/** Something large that is in memory only while it is wanted. */
export interface LoadedResource<Kept> extends AsyncDisposable {
  /**
   * Does something with it, loading it first where it is not there. One use at a time. Work that goes on for long after
   * its signal has aborted is abandoned, and so is what it was done with.
   */
  use<Made>(work: (kept: Kept) => Promise<Made>, signal: AbortSignal): Promise<Made>
}

/** Reading a slice of a prompt takes seconds on a slow machine; after that it will hardly ever end. */
const stuckAfterMs = 15_000

/** Keeps what is loaded until nobody has used it for so long; 0 means for ever. A failure to load is not kept. */
export function keepLoaded<Kept extends Loaded>({
  load,
  idleMs,
  stuck,
  unloaded,
  clock,
}: {
  load(): Promise<Kept>
  readonly idleMs: number
  /** It was abandoned. */
  stuck(): void
  unloaded(): void
  readonly clock: Clock
}): LoadedResource<Kept> {
  let kept: Kept | undefined
  let timer: Disposable | undefined
  /** Loading, using and unloading follow one another. */
  let last: Promise<unknown> = Promise.resolve()

  const inOrder = <Made>(work: () => Promise<Made>): Promise<Made> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }

  const drop = async (): Promise<void> => {
    const dropped = kept
    kept = undefined
    await within(dropped?.dispose(), stuckAfterMs)
  }

  /** Settles when the work does, or after so long. */
  const within = async (work: Promise<unknown> | undefined, ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    using _ = clock.after(ms, resolve)
    await Promise.race([work, promise])
  }

  const orAbandon = async <Made>(work: Promise<Made>, signal: AbortSignal): Promise<Made> => {
    const { promise, reject } = Promise.withResolvers<never>()
    let timer: Disposable | undefined
    const begin = () => {
      timer = clock.after(stuckAfterMs, () => {
        // It may still be in use, so it can be neither used again nor waited for.
        void kept?.dispose().catch(() => {})
        kept = undefined
        stuck()
        reject(signal.reason)
      })
    }
    if (signal.aborted) begin()
    signal.addEventListener('abort', begin, { once: true })
    try {
      return await Promise.race([work, promise])
    } finally {
      timer?.[Symbol.dispose]()
      signal.removeEventListener('abort', begin)
    }
  }

  const rest = (): void => {
    if (idleMs === 0) return
    timer = clock.after(idleMs, () => {
      void inOrder(drop).then(unloaded)
    })
  }

  return {
    use: (work, signal) =>
      inOrder(async () => {
        timer?.[Symbol.dispose]()
        kept ??= await load()
        try {
          return await orAbandon(work(kept), signal)
        } finally {
          rest()
        }
      }),
    [Symbol.asyncDispose]: () =>
      inOrder(async () => {
        timer?.[Symbol.dispose]()
        await drop()
      }),
  }
}

/** One after the other, in the order of asking. */
interface RequestQueue {
  /** Waits for its turn, which lasts until it is given back. Rejects when the signal aborts first. */
  take(signal: AbortSignal): Promise<{ release(): void }>
}

/** Turns with so many waiting at most; whoever comes after them gets `full()`. */
export function createRequestQueue(most: number, full: () => Error): RequestQueue {
  const waiting = new Set<() => void>()
  let taken = false

  const slot = (): { release(): void } => {
    let isGivenBack = false
    return {
      release() {
        if (isGivenBack) return
        isGivenBack = true
        const [next] = waiting
        if (next) next()
        else taken = false
      },
    }
  }

  return {
    async take(signal) {
      signal.throwIfAborted()
      if (!taken) {
        taken = true
        return slot()
      }
      if (waiting.size >= most) throw full()
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const begin = () => {
        waiting.delete(begin)
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        waiting.delete(begin)
        reject(signal.reason)
      }
      waiting.add(begin)
      signal.addEventListener('abort', leave, { once: true })
      await promise
      return slot()
    },
  }
}
