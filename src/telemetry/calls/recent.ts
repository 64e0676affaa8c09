import type { Clock } from '../../core/clock.ts'
import type { Observer } from '../../core/observer.ts'
import { careful } from '../metrics/careful.ts'
import { createFeed } from './feed.ts'
import { type CallFilter, fits } from './filter.ts'
import { type KeptCall, keeping } from './kept-call.ts'
import { createPastCalls } from './past-calls.ts'
import { type CallTimeline, type CallView, callView, stepViews } from './views.ts'

export interface RecentCallsOptions {
  readonly clock: Clock
  /** Takes secrets out of names that are shown. */
  redact(text: string): string
  /** The time that the steps of a trail go by. */
  monotonic?(): number
  /** How many calls that are over are kept. */
  readonly most?: number
  /** And how much memory they may take, about. */
  readonly maxBytes?: number
  /** How many of those that run are kept; others are seen when they are over. */
  readonly maxRunning?: number
  /** How often those who follow are told, and how many calls at once. */
  readonly everyMs?: number
  readonly maxAtOnce?: number
}

/** The calls of now and of a little while ago, for whoever wants to look at them. */
export interface RecentCalls {
  readonly observer: Observer
  /** Newest first. */
  list(filter?: CallFilter, limit?: number): CallView[]
  find(id: string): CallTimeline | undefined
  /** Calls that have begun or ended since the last time, a few times a second, until disposed of. */
  subscribe(listener: (calls: readonly CallView[]) => void): Disposable
}

export function createRecentCalls(options: RecentCallsOptions): RecentCalls {
  const { clock, monotonic = () => performance.now() } = options
  const redact = careful(options.redact)
  const { most = 2000, maxBytes = 2 * 1024 * 1024, maxRunning = 1000, everyMs = 250, maxAtOnce = 200 } = options
  const { begin, end } = keeping(redact)
  const running = new Map<string, KeptCall>()
  const over = createPastCalls(most, maxBytes)
  const feed = createFeed({ clock, everyMs, most: maxAtOnce })
  const viewOf = (call: KeptCall) => callView(call, redact)
  const shown = (call: KeptCall) => {
    call.shown = true
    return viewOf(call)
  }

  const newestFirst = (): KeptCall[] =>
    [...over.all(), ...running.values()].reverse().sort((one, another) => another.at - one.at)

  return {
    observer: {
      began(call, operation) {
        if (running.size >= maxRunning) return
        const kept = begin(call, operation, clock.now(), monotonic())
        running.set(kept.id, kept)
        feed.changed(kept)
      },
      ended(observed) {
        const { call, operation, at, start } = observed
        const kept = running.get(call.id) ?? begin(call, operation, at, start)
        running.delete(call.id)
        end(kept, observed)
        over.add(kept)
        feed.changed(kept)
      },
    },
    list(filter = {}, limit = 100) {
      const found: CallView[] = []
      for (const call of newestFirst()) {
        if (found.length >= limit) break
        if (fits(viewOf(call), filter)) found.push(shown(call))
      }
      return found
    },
    find(id) {
      const call = running.get(id) ?? over.find(id)
      if (!call) return undefined
      const children = newestFirst().filter(({ parent }) => parent === id)
      return { ...shown(call), steps: stepViews(call, redact), children: children.reverse().map(shown) }
    },
    subscribe: (listener) => feed.subscribe((calls) => listener(calls.map(viewOf))),
  }
}
