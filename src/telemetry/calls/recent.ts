import type { Clock } from '../../core/clock.ts'
import type { Observer } from '../../core/observer.ts'
import { safeRedact } from '../metrics/labels.ts'
import {
  type CallRecord,
  type CallSummary,
  type CallTimeline,
  callSummary,
  createCallRecorder,
  stepViews,
} from './call-record.ts'

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
  list(filter?: CallFilter, limit?: number): CallSummary[]
  find(id: string): CallTimeline | undefined
  /** Calls that have begun or ended since the last time, a few times a second, until disposed of. */
  subscribe(listener: (calls: readonly CallSummary[]) => void): Disposable
}

export function createRecentCalls(options: RecentCallsOptions): RecentCalls {
  const { clock, monotonic = () => performance.now() } = options
  const redact = safeRedact(options.redact)
  const { most = 2000, maxBytes = 2 * 1024 * 1024, maxRunning = 1000, everyMs = 250, maxAtOnce = 200 } = options
  const { begin, end } = createCallRecorder(redact)
  const running = new Map<string, CallRecord>()
  const over = createPastCalls(most, maxBytes)
  const feed = createFeed({ clock, everyMs, most: maxAtOnce })
  const viewOf = (call: CallRecord) => callSummary(call, redact)
  const shown = (call: CallRecord) => {
    call.shown = true
    return viewOf(call)
  }

  const newestFirst = (): CallRecord[] =>
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
      const found: CallSummary[] = []
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

/** The last calls that are over, no more than so many and so large; the oldest makes room. */
interface PastCalls {
  add(call: CallRecord): void
  find(id: string): CallRecord | undefined
  /** In the order in which they ended. */
  all(): CallRecord[]
}

/** A ring: taking the oldest out of a large Map would have to step over all that were taken out before it. */
function createPastCalls(most: number, maxBytes: number): PastCalls {
  const places = new Array<CallRecord | undefined>(most)
  let oldest = 0
  let count = 0
  let bytes = 0

  const dropOldest = () => {
    const call = places[oldest] as CallRecord
    places[oldest] = undefined
    oldest = (oldest + 1) % most
    count--
    bytes -= call.bytes
  }

  const all = () => Array.from({ length: count }, (_, index) => places[(oldest + index) % most] as CallRecord)

  return {
    add(call) {
      if (count === most) dropOldest()
      places[(oldest + count) % most] = call
      count++
      bytes += call.bytes
      while (bytes > maxBytes) dropOldest()
    },
    // Calls come in thousands and people who look for one of them do not: there is no index to keep up.
    find: (id) => all().findLast((call) => call.id === id),
    all,
  }
}

/** Which calls somebody wants to see; whatever is not said does not matter. */
interface CallFilter {
  readonly agent?: string | undefined
  readonly principal?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
  readonly outcome?: CallSummary['outcome'] | undefined
  /** Somewhere in its names, its id or its code; capitals do not count. */
  readonly text?: string | undefined
}

const exactly = ['agent', 'principal', 'server', 'name', 'operation', 'outcome'] as const

/** Asked about what is shown, so that nobody can find out by searching what is not. */
function fits(view: CallSummary, filter: CallFilter): boolean {
  if (exactly.some((field) => filter[field] !== undefined && view[field] !== filter[field])) return false
  const text = filter.text?.trim().toLowerCase()
  return text === undefined || text === '' || textOf(view).includes(text)
}

const textOf = ({ id, agent, principal, operation, server, name, code }: CallSummary): string =>
  [`${server}.${name}`, agent, principal, operation, id, code ?? ''].join('\n').toLowerCase()

/** Tells those who follow the calls what has changed, some times a second. */
interface Feed {
  changed(call: CallRecord): void
  subscribe(listener: (calls: readonly CallRecord[]) => void): Disposable
}

interface FeedOptions {
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
function createFeed({ clock, everyMs, most }: FeedOptions): Feed {
  const listeners = new Set<(calls: readonly CallRecord[]) => void>()
  let gathered: CallRecord[] = []
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
      const own = (calls: readonly CallRecord[]) => listener(calls)
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
