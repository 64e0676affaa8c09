import type { Clock } from '../../../core/clock.ts'

interface Loaded {
  dispose(): Promise<void>
}

/** Something large that is in memory only while it is wanted. */
export interface Residence<Kept> extends AsyncDisposable {
  /** Does something with it, loading it first where it is not there. One use at a time. */
  use<Made>(work: (kept: Kept) => Promise<Made>): Promise<Made>
}

/** Keeps what is loaded until nobody has used it for so long; 0 means for ever. A failure to load is not kept. */
export function keepLoaded<Kept extends Loaded>({
  load,
  idleMs,
  unloaded,
  clock,
}: {
  load(): Promise<Kept>
  readonly idleMs: number
  unloaded(): void
  readonly clock: Clock
}): Residence<Kept> {
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
    await dropped?.dispose()
  }

  const rest = (): void => {
    if (idleMs === 0) return
    timer = clock.after(idleMs, () => {
      void inOrder(drop).then(unloaded)
    })
  }

  return {
    use: (work) =>
      inOrder(async () => {
        timer?.[Symbol.dispose]()
        kept ??= await load()
        try {
          return await work(kept)
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
