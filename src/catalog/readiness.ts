import type { Clock } from '../core/clock.ts'
import type { Source } from '../core/source.ts'
import type { Health } from '../core/source-status.ts'
import { everySecond, type Wait } from '../core/waiting.ts'

export type SourceReadiness = ReturnType<typeof createReadiness>

export interface ReadinessOptions {
  readonly sources: readonly Source[]
  readonly deadlineMs: { readonly known: number; readonly first: number }
  readonly clock: Clock
}

/** How long a call waits for a source that has no configured timeout. */
export const defaultCallMs = 30_000

const failed: ReadonlySet<Health> = new Set(['unhealthy', 'needs-auth', 'disabled'])

/** Waits for sources that have not finished their first start (V2). Does not wait for sources that failed to start. */
export function createReadiness({ sources, deadlineMs, clock }: ReadinessOptions) {
  const asking = new Map<Source, Promise<void>>()
  const renewing = new Map<Source, Promise<void>>()
  const settled = new Set<Source>()
  const timers = new Map<Disposable, () => void>()

  /** Calls the source's `ready`. All waiting callers share one call per source. */
  const asked = (source: Source): Promise<void> => {
    const known = asking.get(source)
    if (known) return known
    const done = () => {
      asking.delete(source)
      settled.add(source)
    }
    const answer = source.ready().then(done, done)
    asking.set(source, answer)
    return answer
  }

  /** Whether the source's entries are not known yet: its first start is running or has not begun. */
  const pending = (source: Source): boolean => {
    const { health } = source.status()
    if (failed.has(health)) return false
    if (health === 'starting' || !settled.has(source)) return true
    return health === 'stale' && source.entries().length === 0
  }

  const within = (ms: number, answer: Promise<void>, open?: DisposableStack): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = after(ms, () => resolve(false))
    open?.use(timer)
    void answer.then(() => {
      timer[Symbol.dispose]()
      resolve(true)
    })
    return promise
  }

  const after = (ms: number, callback: () => void): Disposable => {
    const timer = clock.after(ms, () => {
      timers.delete(timer)
      callback()
    })
    timers.set(timer, callback)
    return {
      [Symbol.dispose]() {
        timer[Symbol.dispose]()
        timers.delete(timer)
      },
    }
  }

  return {
    /** Triggers all sources, and waits for those that `waitsFor` accepts. `brief` uses the shorter deadline for all. */
    async all(brief: 'brief' | undefined, waitsFor: (source: Source) => boolean): Promise<void> {
      const waiting: Promise<boolean>[] = []
      for (const source of sources) {
        const first = brief === undefined && source.entries().length === 0
        // Also trigger sources that have already started, so that they can refresh, but do not wait for them.
        const renewed = brief === undefined ? renewing.get(source) : undefined
        const isAwaited = (pending(source) || renewed) && waitsFor(source)
        const answer = asked(source)
        if (isAwaited)
          waiting.push(within(first ? deadlineMs.first : deadlineMs.known, renewed?.then(() => answer) ?? answer))
      }
      if (waiting.length > 0) await Promise.all(waiting)
    },
    /** Makes sources that are listed again for each conversation begin to do so; lists wait for that. */
    conversationStarted(isOpen: (source: Source) => boolean): void {
      for (const source of sources.filter(isOpen)) {
        const renewed = source.renew?.()
        if (!renewed) continue
        renewing.set(source, renewed)
        void renewed.then(() => renewing.get(source) === renewed && renewing.delete(source))
      }
    },
    /**
     * Triggers the sources that a call needs, even if they had no entries before, and waits until each has settled or
     * timed out, or until `enough` returns true. Returns the sources that timed out. Rejects with the signal's reason.
     * For an entry that is `missing`, they list their entries again; only those that the call `names` if they are idle.
     */
    async of(
      needed: readonly Source[],
      wait: Wait = {},
      { enough = () => false, missing }: { enough?: () => boolean; missing?: 'named' | 'unnamed' } = {},
    ): Promise<readonly Source[]> {
      const { signal, timeoutMs } = wait
      const wake = missing === 'named' ? 'wake' : undefined
      const answered = (source: Source) => (missing ? asked(source).then(() => source.relist?.(wake)) : asked(source))
      signal?.throwIfAborted()
      for (const source of needed) source.expedite?.()
      const left = new Set(needed)
      const late: Source[] = []
      const began = clock.monotonic()
      using open = new DisposableStack()
      const waits = new Map(
        needed.map((source) => [
          source,
          within(timeoutMs ?? source.timeoutMs ?? defaultCallMs, answered(source), open).then((inTime) => {
            left.delete(source)
            if (!inTime) late.push(source)
          }),
        ]),
      )
      using _ticking =
        wait.progress && everySecond(clock, () => wait.progress?.(clock.monotonic() - began, namesOf(left)))
      const aborted = Promise.withResolvers<never>()
      aborted.promise.catch(() => {})
      const abort = () => aborted.reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        while (left.size > 0 && !enough()) {
          await Promise.race([aborted.promise, ...[...left].map((source) => waits.get(source))])
        }
      } finally {
        signal?.removeEventListener('abort', abort)
      }
      return late
    },
    pending,
    [Symbol.dispose](): void {
      for (const [timer, callback] of timers) {
        timer[Symbol.dispose]()
        callback()
      }
      timers.clear()
    },
  }
}

const namesOf = (sources: Iterable<Source>): readonly string[] => [...sources].map(({ name }) => name)
