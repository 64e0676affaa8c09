import type { Clock } from '../../../core/clock.ts'

/** A large resource that is in memory only while needed. */
interface LoadedResource<Kept> extends AsyncDisposable {
  /**
   * Runs work with the resource, which is loaded first if necessary. Only one piece of work runs at a time. Work that
   * is still running long after its signal has aborted is abandoned, together with the resource.
   */
  use<Made>(work: (kept: Kept) => Promise<Made>, signal: AbortSignal): Promise<Made>
}

/** How long work may continue after its signal has aborted. A prompt slice can take seconds on a slow machine. */
const stuckAfterMs = 15_000

/** Keeps the resource loaded until it has been idle for `idleMs`; 0 means forever. A failed load is retried. */
export function keepLoaded<Kept extends { dispose(): Promise<void> }>(options: {
  load(): Promise<Kept>
  readonly idleMs: number
  /** Called when the resource has been abandoned. */
  stuck(): void
  unloaded(): void
  readonly clock: Clock
}): LoadedResource<Kept> {
  const { load, idleMs, stuck, unloaded, clock } = options
  let kept: Kept | undefined
  let timer: Disposable | undefined
  /** Serializes loading, use and unloading. */
  let last: Promise<unknown> = Promise.resolve()

  const inOrder = <Made>(work: () => Promise<Made>): Promise<Made> => {
    const next = last.then(work, work)
    last = next.catch(() => {})
    return next
  }

  const drop = async (): Promise<void> => {
    const dropped = kept
    kept = undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    using _timer = clock.after(stuckAfterMs, resolve)
    await Promise.race([dropped?.dispose(), promise])
  }

  const orAbandon = async <Made>(work: Promise<Made>, signal: AbortSignal): Promise<Made> => {
    const { promise, reject } = Promise.withResolvers<never>()
    let timer: Disposable | undefined
    const begin = () => {
      timer = clock.after(stuckAfterMs, () => {
        // The abandoned work may still be using the resource, so do not reuse it or wait for its disposal.
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
