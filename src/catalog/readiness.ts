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
  const listing = new Map<Source, Promise<void>>()
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

  /** Lists the source's entries, unless that was done since Toolway started: it may have more than in an earlier run. */
  const listed = (source: Source): Promise<void> => {
    const known = listing.get(source)
    if (known || !isUnconfirmed(source)) return known ?? asked(source)
    const answer = asked(source)
      .then(() => (isUnconfirmed(source) ? source.refresh() : undefined))
      .finally(() => listing.delete(source))
    listing.set(source, answer)
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
        if (pending(source) && waitsFor(source))
          waiting.push(within(first ? deadlineMs.first : deadlineMs.known, asked(source)))
        else void asked(source)
      }
      if (waiting.length > 0) await Promise.all(waiting)
    },
    /**
     * Triggers the sources that a call needs, even if they had no entries before, and waits until each has settled or
     * timed out, or until `enough` returns true. Returns the sources that timed out. Rejects with the signal's reason.
     * For an entry that is `missing`, entries that are known from an earlier run are not enough.
     */
    async of(
      needed: readonly Source[],
      wait: Wait = {},
      { enough = () => false, missing = false }: { enough?: () => boolean; missing?: boolean } = {},
    ): Promise<readonly Source[]> {
      const { signal, timeoutMs } = wait
      const answered = missing ? listed : asked
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

/** Whether the source's entries, if it has any, are those of an earlier run. */
const isUnconfirmed = (source: Source): boolean => ['stale', 'starting'].includes(source.status().health)

const namesOf = (sources: Iterable<Source>): readonly string[] => [...sources].map(({ name }) => name)
