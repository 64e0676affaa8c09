import type { Clock } from '../core/clock.ts'
import type { Kind } from '../core/entry.ts'
import type { Log } from '../core/log.ts'

/** Servers come and go in bursts: callers hear of a burst once, soon after its end and at the latest after a second. */
const quietMs = 100
const latestMs = 1_000

export type ChangeListener = (kinds: ReadonlySet<Kind>) => void

export interface Changes extends Disposable {
  /** Something may have changed. */
  touch(): void
  onChange(listener: ChangeListener): Disposable
}

/** Tells listeners, debounced, what `changedKinds` finds when it is quiet again; nothing found, nothing told. */
export function createChanges(clock: Clock, log: Log, changedKinds: () => ReadonlySet<Kind>): Changes {
  const listeners = new Set<ChangeListener>()
  let timer: Disposable | undefined
  let latest = 0

  const tell = () => {
    timer = undefined
    const kinds = changedKinds()
    if (kinds.size === 0) return
    for (const listener of listeners) {
      try {
        listener(kinds)
      } catch (error) {
        log.error({ err: error }, 'a listener failed to hear of changed lists')
      }
    }
  }

  return {
    touch: () => {
      const now = clock.monotonic()
      if (timer) timer[Symbol.dispose]()
      else latest = now + latestMs
      timer = clock.after(Math.max(0, Math.min(quietMs, latest - now)), tell)
    },
    onChange: (listener) => {
      // Wrapped, so that one function registered twice is two listeners.
      const own: ChangeListener = (kinds) => listener(kinds)
      listeners.add(own)
      return { [Symbol.dispose]: () => void listeners.delete(own) }
    },
    [Symbol.dispose]() {
      timer?.[Symbol.dispose]()
      timer = undefined
      listeners.clear()
    },
  }
}
