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
  redact(text: string): string
  /** The clock of the trail's steps. */
  monotonic?(): number
  /** Maximum number of finished calls. */
  readonly most?: number
  readonly maxBytes?: number
  /** Maximum number of running calls; others appear when they end. */
  readonly maxRunning?: number
  /** Interval between notifications of subscribers, and maximum calls in each. */
  readonly everyMs?: number
  readonly maxAtOnce?: number
}

export interface RecentCalls {
  readonly observer: Observer
  /** Newest first. */
  list(filter?: CallFilter, limit?: number): CallSummary[]
  find(id: string): CallTimeline | undefined
  /** Notifies a few times per second of calls that began or ended, until disposed. */
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

/** Bounded by number and memory; evicts the oldest. */
interface PastCalls {
  add(call: CallRecord): void
  find(id: string): CallRecord | undefined
  /** In the order in which they ended. */
  all(): CallRecord[]
}

/** A ring buffer: deleting the oldest key of a large Map skips all keys deleted before it. */
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
    // No index: calls are frequent, lookups are rare.
    find: (id) => all().findLast((call) => call.id === id),
    all,
  }
}

interface CallFilter {
  readonly agent?: string | undefined
  readonly principal?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
  readonly outcome?: CallSummary['outcome'] | undefined
  /** Case-insensitive part of a name, the ID or the code. */
  readonly text?: string | undefined
}

const exactly = ['agent', 'principal', 'server', 'name', 'operation', 'outcome'] as const

/** Matches the redacted view, so that searching cannot reveal secrets. */
function fits(view: CallSummary, filter: CallFilter): boolean {
  if (exactly.some((field) => filter[field] !== undefined && view[field] !== filter[field])) return false
  const text = filter.text?.trim().toLowerCase()
  return text === undefined || text === '' || textOf(view).includes(text)
}

const textOf = ({ id, agent, principal, operation, server, name, code }: CallSummary): string =>
  [`${server}.${name}`, agent, principal, operation, id, code ?? ''].join('\n').toLowerCase()

interface Feed {
  changed(call: CallRecord): void
  subscribe(listener: (calls: readonly CallRecord[]) => void): Disposable
}

interface FeedOptions {
  readonly clock: Clock
  readonly everyMs: number
  /** Maximum calls per notification; beyond it only calls already shown as running are added. */
  readonly most: number
}

/**
 * Collects changes between notifications. A call that begins and ends within one interval is reported once. Without
 * subscribers nothing is collected and no timer runs. Under load some calls are skipped, but the end of a call shown as
 * running is always reported.
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
      // Wrapped, so that subscribing one function twice gives two listeners.
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
