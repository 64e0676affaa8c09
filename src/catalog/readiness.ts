import type { Clock } from '../core/clock.ts'
import { endWith, never } from '../core/deadline.ts'
import type { Source } from '../core/source.ts'
import type { Health } from '../core/source-status.ts'
import { everySecond, type Wait } from '../core/waiting.ts'

/** How long a call waits for a source that has no configured timeout. */
export const defaultCallMs = 30_000

/** How long a list waits by default: for a server whose entries are not known yet, and for any other server. */
const firstListMs = 8_000
const knownListMs = 2_000

const failedHealth: ReadonlySet<Health> = new Set(['unhealthy', 'needs-auth', 'disabled'])

/** What a call waits for, besides its sources. */
interface NeededEntry {
  /** Ends the wait early. */
  readonly enough?: () => boolean
  /** The entry is unknown, so the sources list again; only those that the call names if they are idle. */
  readonly missing: 'named' | 'unnamed'
}

/** Waits for sources that have not finished their first start (V2). Does not wait for sources that failed to start. */
export class SourceReadiness implements Disposable {
  readonly #sources: readonly Source[]
  readonly #listDeadlineMs: number | undefined
  readonly #clock: Clock
  readonly #asking = new Map<Source, Promise<void>>()
  readonly #renewing = new Map<Source, Promise<void>>()
  readonly #settled = new Set<Source>()
  /** Ends the waits that are open. */
  readonly #timeouts = new Set<() => void>()

  constructor(sources: readonly Source[], listDeadlineMs: number | undefined, clock: Clock) {
    this.#sources = sources
    this.#listDeadlineMs = listDeadlineMs
    this.#clock = clock
  }

  /** Triggers all sources, and waits for those that `waitsFor` accepts. `brief` uses the shorter deadline for all. */
  async all(brief: 'brief' | undefined, waitsFor: (source: Source) => boolean): Promise<void> {
    const waiting: Promise<boolean>[] = []
    for (const source of this.#sources) {
      const first = brief === undefined && source.entries().length === 0
      // Also trigger sources that have already started, so that they can refresh, but do not wait for them.
      const renewed = brief === undefined ? this.#renewing.get(source) : undefined
      const isAwaited = (this.pending(source) || renewed) && waitsFor(source)
      const ready = this.#ready(source)
      if (!isAwaited) continue
      const ms = this.#listDeadlineMs ?? (first ? firstListMs : knownListMs)
      waiting.push(this.#within(ms, renewed?.then(() => ready) ?? ready))
    }
    if (waiting.length > 0) await Promise.all(waiting)
  }

  /** Makes sources that are listed again for each conversation begin to do so; lists wait for that. */
  conversationStarted(isOpen: (source: Source) => boolean): void {
    for (const source of this.#sources.filter(isOpen)) {
      const renewed = source.renew?.()
      if (!renewed) continue
      this.#renewing.set(source, renewed)
      void renewed.then(() => this.#renewing.get(source) === renewed && this.#renewing.delete(source))
    }
  }

  /**
   * Triggers the sources that a call needs, even if they had no entries before, and waits until each has settled or
   * timed out. Returns the sources that timed out. Rejects with the signal's reason.
   */
  async of(needed: readonly Source[], wait: Wait = {}, entry?: NeededEntry): Promise<readonly Source[]> {
    const { signal = never, timeoutMs } = wait
    signal.throwIfAborted()
    for (const source of needed) source.expedite?.()
    const left = new Map<Source, Promise<void>>()
    const late: Source[] = []
    const began = this.#clock.monotonic()
    using open = new DisposableStack()
    for (const source of needed) {
      const ready = this.#ready(source)
      const listed = entry ? ready.then(() => source.relist?.(entry.missing === 'named' ? 'wake' : undefined)) : ready
      const ended = this.#within(timeoutMs ?? source.timeoutMs ?? defaultCallMs, listed, open).then((inTime) => {
        left.delete(source)
        if (!inTime) late.push(source)
      })
      left.set(source, ended)
    }
    const tick = () =>
      wait.progress?.(
        this.#clock.monotonic() - began,
        Array.from(left.keys(), ({ name }) => name),
      )
    if (wait.progress) open.use(everySecond(this.#clock, tick))
    while (left.size > 0 && !entry?.enough?.()) await endWith(signal, Promise.race(left.values()))
    return [...late]
  }

  /** Whether the source's entries are not known yet: its first start is running or has not begun. */
  pending(source: Source): boolean {
    const { health } = source.status()
    if (failedHealth.has(health)) return false
    if (health === 'starting' || !this.#settled.has(source)) return true
    return health === 'stale' && source.entries().length === 0
  }

  [Symbol.dispose](): void {
    for (const end of this.#timeouts) end()
  }

  /** Calls the source's `ready`. All waiting callers share one call per source. */
  #ready(source: Source): Promise<void> {
    const known = this.#asking.get(source)
    if (known) return known
    const done = () => {
      this.#asking.delete(source)
      this.#settled.add(source)
    }
    const ready = source.ready().then(done, done)
    this.#asking.set(source, ready)
    return ready
  }

  /** Whether work ends in this time. `open` ends the wait, too. */
  #within(ms: number, work: Promise<void>, open?: DisposableStack): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const end = (inTime: boolean) => {
      timer[Symbol.dispose]()
      this.#timeouts.delete(timeOut)
      resolve(inTime)
    }
    const timeOut = () => end(false)
    const timer = this.#clock.after(ms, timeOut)
    this.#timeouts.add(timeOut)
    open?.defer(timeOut)
    void work.then(() => end(true))
    return promise
  }
}
