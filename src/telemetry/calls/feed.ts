import type { Clock } from '../../core/clock.ts'
import type { KeptCall } from './kept-call.ts'

/** Tells those who follow the calls what has changed, some times a second. */
export interface Feed {
  changed(call: KeptCall): void
  subscribe(listener: (calls: readonly KeptCall[]) => void): Disposable
}

export interface FeedOptions {
  readonly clock: Clock
  readonly everyMs: number
  /** How many calls are told at once; of more only those whose end somebody waits for. */
  readonly most: number
}

/**
 * Gathers changes between two tellings. A call that has begun and ended in between is told once; while nobody follows,
 * nothing is gathered and no timer runs. Under load not every call is told, but one that was shown running always
 * comes to its end.
 */
export function createFeed({ clock, everyMs, most }: FeedOptions): Feed {
  const listeners = new Set<(calls: readonly KeptCall[]) => void>()
  let gathered: KeptCall[] = []
  let timer: Disposable | undefined

  const tell = () => {
    timer = undefined
    const calls = gathered
    gathered = []
    for (const call of calls) {
      call.waiting = false
      call.shown = true
    }
    for (const listener of listeners) listener(calls)
  }

  return {
    changed(call) {
      if (listeners.size === 0 || call.waiting) return
      if (gathered.length >= most && !call.shown) return
      call.waiting = true
      gathered.push(call)
      timer ??= clock.after(everyMs, tell)
    },
    subscribe(listener) {
      // Wrapped, so that one function that subscribes twice is two listeners.
      const own = (calls: readonly KeptCall[]) => listener(calls)
      listeners.add(own)
      return {
        [Symbol.dispose]() {
          listeners.delete(own)
          if (listeners.size > 0) return
          timer?.[Symbol.dispose]()
          timer = undefined
          for (const call of gathered) call.waiting = false
          gathered = []
        },
      }
    },
  }
}
