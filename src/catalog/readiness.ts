import type { Clock } from '../core/clock.ts'
import type { Source } from '../core/source.ts'

/** Waiting for sources that nobody has heard of yet, so that no source holds anybody up for longer than the deadline. */
export interface Readiness extends Disposable {
  /** Waits for whoever has not spoken yet. A source that hangs is waited for once, by those who come while it may. */
  all(): Promise<void>
  /** Waits for one source that was asked for by name; it is asked again even if it had nothing to say before. */
  of(source: Source): Promise<void>
  /** Whether the source has spoken, or has been found unable to. */
  settled(source: Source): boolean
}

export interface ReadinessOptions {
  readonly sources: readonly Source[]
  readonly deadlineMs: number
  readonly clock: Clock
}

export function createReadiness({ sources, deadlineMs, clock }: ReadinessOptions): Readiness {
  const waits = new Map<Source, Promise<void>>()
  const settled = new Set<Source>()
  const timers = new Map<Disposable, () => void>()

  /** The wait that is under way, or a new one. After the deadline it is over for everybody, although the source is not. */
  const wait = (source: Source): Promise<void> => {
    const known = waits.get(source)
    if (known) return known
    const { promise, resolve } = Promise.withResolvers<void>()
    waits.set(source, promise)
    const timer = clock.after(deadlineMs, resolve)
    timers.set(timer, resolve)
    source
      .ready()
      .catch(() => {})
      .then(() => {
        timer[Symbol.dispose]()
        timers.delete(timer)
        waits.delete(source)
        settled.add(source)
        resolve()
      })
    return promise
  }

  return {
    all: async () => {
      // Who has spoken is asked all the same, so that it can look after itself, but not waited for.
      for (const source of settled) source.ready().catch(() => {})
      const silent = sources.filter((source) => !settled.has(source))
      if (silent.length > 0) await Promise.all(silent.map(wait))
    },
    of: wait,
    settled: (source) => settled.has(source),
    [Symbol.dispose]() {
      for (const [timer, resolve] of timers) {
        timer[Symbol.dispose]()
        resolve()
      }
      timers.clear()
    },
  }
}
