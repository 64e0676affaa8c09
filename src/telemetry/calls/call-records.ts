import type { Operation } from '../../core/audit.ts'
import type { Call, Trail, TrailStep } from '../../core/call.ts'
import { type CallFilter, type CallOrder, type CallPosition, callFilters } from '../../core/call-query.ts'
import type { Clock } from '../../core/clock.ts'
import type { StoredCall, StoredStep } from '../../core/history.ts'
import type { Observed, Observer } from '../../core/observer.ts'
import type { CallOutcome } from '../../core/outcome.ts'
import { InFlight } from '../../lib/in-flight.ts'
import { listen } from '../../lib/listen.ts'
import { safeRedact } from '../metrics/family.ts'

export interface RecentCallsOptions {
  readonly clock: Clock
  redact(text: string): string
  /** The clock that also measures the steps of a call's trail. */
  monotonic?(): number
  /** Max number of finished calls that are kept. */
  readonly maxCalls?: number
  readonly maxBytes?: number
  /** Max number of running calls that are listed. Calls beyond that appear when they end. */
  readonly maxRunning?: number
  /** The interval between notifications to subscribers, and the max number of calls in each. */
  readonly everyMs?: number
  readonly maxAtOnce?: number
  readonly onEnded?: ((call: CallRecord) => void) | undefined
}

export interface RecentCalls {
  readonly observer: Observer
  /** The calls that match a filter, newest first. */
  list(filter?: CallFilter, limit?: number): CallSummary[]
  find(id: string): CallTimeline | undefined
  /** Tells the listener, a few times per second, which calls began or ended. Disposing ends the subscription. */
  subscribe(listener: (calls: readonly CallSummary[]) => void): Disposable
  /** Adds calls of an earlier process, newest first. They are dropped first. */
  restore(calls: readonly StoredCall[]): void
}

export function createRecentCalls(options: RecentCallsOptions): RecentCalls {
  const { clock, monotonic = () => performance.now() } = options
  const redact = safeRedact(options.redact)
  const { maxCalls = 2000, maxBytes = 2 * 1024 * 1024, maxRunning = 1000, everyMs = 250, maxAtOnce = 200 } = options
  const { onEnded } = options
  const { begin, end } = createCallRecorder(redact)
  const running = new InFlight<string, CallRecord>()
  const finished = createFinishedCalls(maxCalls, maxBytes)
  const feed = createFeed(clock, everyMs, maxAtOnce)
  const viewOf = (call: CallRecord) => callSummary(call, redact)
  const shown = (call: CallRecord) => {
    call.shown = true
    return viewOf(call)
  }

  const newestFirst = (): CallRecord[] =>
    [...finished.all(), ...running.values()].reverse().sort((one, another) => another.at - one.at)

  return {
    observer: {
      began(call, operation) {
        if (running.size >= maxRunning) return
        const record = begin(call, operation, clock.now(), monotonic())
        running.set(record.id, record)
        feed.changed(record)
      },
      ended(observed) {
        const { call, operation, at, start } = observed
        const record = running.take(call.id) ?? begin(call, operation, at, start)
        end(record, observed)
        finished.add(record)
        onEnded?.(record)
        feed.changed(record)
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
      // No index is kept: calls are frequent, but lookups are rare.
      const call = running.get(id) ?? finished.all().findLast((one) => one.id === id)
      if (!call) return undefined
      const children = descendantsOf(id, newestFirst().reverse())
      return { ...shown(call), steps: stepsOf(call, redact).map(stepView), children: children.map(shown) }
    },
    subscribe: (listener) => feed.subscribe((calls) => listener(calls.map(viewOf))),
    restore: (calls) => finished.restore(calls.map(restoredCall)),
  }
}

const maxDescendants = 500

/** The calls that a call made, at any depth, oldest first. */
function descendantsOf(id: string, oldestFirst: readonly CallRecord[]): CallRecord[] {
  // Not in one pass: an inner call of an inner call may have begun in the same millisecond, and then comes first.
  const byParent = Map.groupBy(oldestFirst, ({ parent }) => parent)
  const found = new Set(byParent.get(id))
  for (const call of found) {
    if (found.size >= maxDescendants) break
    for (const inner of byParent.get(call.id) ?? []) found.add(inner)
  }
  return [...found].slice(0, maxDescendants).sort((one, another) => one.at - another.at)
}

/** Keeps finished calls, limited by number and memory. A ring buffer: finding a large Map's oldest key is slow. */
function createFinishedCalls(maxCalls: number, maxBytes: number) {
  const calls = new Array<CallRecord | undefined>(maxCalls)
  let oldest = 0
  let count = 0
  let bytes = 0
  /** Calls of an earlier process, newest first. */
  let restored: readonly CallRecord[] = []

  const dropOldest = () => {
    bytes -= (calls[oldest] as CallRecord).bytes
    calls[oldest] = undefined
    oldest = (oldest + 1) % maxCalls
    count--
  }

  return {
    add(call: CallRecord): void {
      if (count === maxCalls) dropOldest()
      calls[(oldest + count) % maxCalls] = call
      count++
      bytes += call.bytes
      while (bytes > maxBytes) dropOldest()
    },
    restore(earlier: readonly CallRecord[]): void {
      let room = maxBytes
      const last = earlier.findIndex((call) => {
        room -= call.bytes
        return room < 0
      })
      restored = earlier.slice(0, Math.min(last < 0 ? maxCalls : last, maxCalls))
    },
    /** The calls in the order in which they ended. */
    all(): CallRecord[] {
      const own = Array.from({ length: count }, (_, index) => calls[(oldest + index) % maxCalls] as CallRecord)
      if (restored.length === 0) return own
      // As many calls of the earlier process are dropped as there are new ones.
      restored = restored.slice(0, maxCalls - count)
      const known = new Set(own.map(({ id }) => id))
      return [...restored.filter(({ id }) => !known.has(id)).reverse(), ...own]
    },
  }
}

/** Whether a call matches a filter. Compares the redacted view, so that searching cannot reveal secrets. */
export function fits(view: CallSummary, filter: CallFilter): boolean {
  if (callFilters.some((field) => filter[field] !== undefined && view[field] !== filter[field])) return false
  const { agents, slowerThan, from, to } = filter
  if (agents && !agents.includes(view.agent)) return false
  if (slowerThan !== undefined && (view.ms === null || view.ms < slowerThan)) return false
  if ((from !== undefined && view.at < from) || (to !== undefined && view.at >= to)) return false
  const text = filter.text?.trim().toLowerCase()
  return text === undefined || text === '' || textOf(view).includes(text)
}

const textOf = ({ id, agent, principal, operation, server, name, code }: CallSummary): string =>
  [`${server}.${name}`, agent, principal, operation, id, code ?? ''].join('\n').toLowerCase()

/** What calls are ordered by. Running calls are the last ones by duration. */
const orderValues: Readonly<Record<CallOrder['by'], (call: CallSummary, descending: boolean) => string | number>> = {
  time: ({ at }) => at,
  target: ({ server, name }) => `${server}.${name}`,
  agent: ({ agent }) => agent,
  outcome: ({ outcome, code }) => `${outcome} ${code ?? ''}`,
  cache: ({ cache }) => cache ?? '',
  duration: ({ ms }, descending) => ms ?? (descending ? -1 : Number.MAX_SAFE_INTEGER),
}

export const callPosition = (call: CallSummary, { by, descending }: CallOrder): CallPosition => [
  orderValues[by](call, descending),
  call.id,
]

/** Compares positions in an order, as the history does. */
export function comparePositions([value, id]: CallPosition, other: CallPosition, { descending }: CallOrder): number {
  const [first, second] = value === other[0] ? [id, other[1]] : [value, other[0]]
  return first === second ? 0 : first < second === descending ? 1 : -1
}

/**
 * Collects changes between notifications. A call that begins and ends within one interval is reported once. Without
 * subscribers, nothing is collected and no timer runs. Under load, beyond `maxAtOnce` calls per notification, some
 * calls are skipped, but the end of a call that was shown as running is always reported.
 */
function createFeed(clock: Clock, everyMs: number, maxAtOnce: number) {
  const listeners = new Set<(calls: readonly CallRecord[]) => void>()
  let gathered: CallRecord[] = []
  let timer: Disposable | undefined

  const notify = () => {
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
    changed(call: CallRecord): void {
      if (listeners.size === 0 || call.waiting) return
      if (gathered.length >= maxAtOnce && !call.shown) return
      call.waiting = true
      gathered.push(call)
      timer ??= clock.after(everyMs, notify)
    },
    subscribe(listener: (calls: readonly CallRecord[]) => void): Disposable {
      const listening = listen(listeners, listener)
      return {
        [Symbol.dispose]() {
          listening[Symbol.dispose]()
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

/** A recorded call. Never holds arguments or results. */
export interface CallRecord {
  readonly id: string
  readonly parent: string | undefined
  readonly agent: string
  readonly principal: string
  readonly operation: Operation
  readonly server: string
  readonly name: string
  at: number
  /** The start of the call, by the clock that measures the steps of the trail. */
  start: number
  trail: Trail | undefined
  ms: number | undefined
  outcome: CallOutcome['kind'] | undefined
  /** The error code, which may be defined by a server. */
  code: string | undefined
  /** Whether a subscriber has seen the call running, and so must see its end. */
  shown: boolean
  waiting: boolean
  /** The approximate size in memory, set when the call ends. */
  bytes: number
}

const maxName = 300

/** Creates call records. Names are redacted when shown; long ones before they are truncated, to find whole secrets. */
export function createCallRecorder(redact: (text: string) => string) {
  // Copy the string: a slice would keep the whole original in memory.
  const brief = (text: string): string =>
    text.length <= maxName ? text : Buffer.from(`${redact(text).slice(0, maxName - 1)}…`).toString()
  return {
    begin: (
      { id, parent, caller, entry, trail }: Call,
      operation: Operation,
      at: number,
      start: number,
    ): CallRecord => ({
      ...{ id, parent, at, start, trail },
      agent: brief(caller.agent),
      principal: brief(caller.principal),
      operation: brief(operation),
      server: brief(entry.server),
      name: brief(entry.name),
      ms: undefined,
      outcome: undefined,
      code: undefined,
      shown: false,
      waiting: false,
      bytes: 0,
    }),
    end(record: CallRecord, { at, start, ms, outcome, trail }: Observed): void {
      record.at = at
      record.start = start
      record.ms = ms
      record.outcome = outcome.kind
      record.code = outcome.code === undefined ? undefined : brief(outcome.code)
      record.trail = trail
      record.bytes = bytesOf(record)
    },
  }
}

const emptyCall = 300
const emptyStep = 200

/** The approximate size of a call in memory. Strings are counted as if no other call shared them. */
function bytesOf({ id, parent = '', agent, principal, operation, server, name, code = '', trail }: CallRecord): number {
  const names = agent.length + principal.length + operation.length + server.length + name.length
  let bytes = emptyCall + 2 * (id.length + parent.length + names + code.length)
  for (const { error = '' } of trail?.steps ?? []) bytes += emptyStep + 2 * error.length
  return bytes
}

export interface CallSummary extends Omit<StoredCall, 'ms' | 'outcome' | 'steps'> {
  /** The duration. Null while the call is running. */
  readonly ms: number | null
  readonly outcome: StoredCall['outcome'] | 'running'
}

/** A step as it is shown. */
export interface CallStep {
  readonly name: string
  /** The time from the start of the call to the start of the step. */
  readonly startMs: number
  /** The duration. Null while the step is running. */
  readonly ms: number | null
  readonly error: string | null
}

const stepView = ([name, startMs, ms, error]: StoredStep): CallStep => ({ name, startMs, ms, error })

export interface CallTimeline extends CallSummary {
  readonly steps: readonly CallStep[]
  /** The inner calls at any depth, oldest first. */
  readonly children: readonly CallSummary[]
}

/** A call as it is shown. Everything that may hold a secret, including every name, is redacted (B6). */
const callSummary = (record: CallRecord, redact: (text: string) => string): CallSummary => ({
  id: record.id,
  parent: record.parent ?? null,
  at: record.at,
  ms: record.ms === undefined ? null : toMicroseconds(record.ms),
  agent: redact(record.agent),
  principal: redact(record.principal),
  operation: redact(record.operation),
  server: redact(record.server),
  name: redact(record.name),
  outcome: record.outcome ?? 'running',
  code: record.code === undefined ? null : redact(record.code),
  cache: record.trail?.cache ?? null,
})

/** Rounds milliseconds: more digits mean nothing, and writing them takes time. */
const toMicroseconds = (ms: number): number => Math.round(ms * 1000) / 1000

const maxSteps = 100

/**
 * The steps of a call. Only some are recorded while it runs, to keep calls cheap; the others follow from their times:
 * the policy decision, the checks of arguments and limits, and the pauses before retries.
 */
function stepsOf({ trail, start, ms }: CallRecord, redact: (text: string) => string): StoredStep[] {
  if (!trail) return []
  const { decided, lookup, cache, steps, waits = { endedMs: 0 } } = trail
  const found: StoredStep[] = []
  let isInOrder = true
  let latest = start
  const add = (name: string, from: number, to: number | undefined, error?: string) => {
    const stepMs = to === undefined ? null : toMicroseconds(Math.max(to - from, 0))
    const text = error === undefined ? null : redact(error).slice(0, maxName)
    isInOrder &&= from >= latest
    latest = from
    found.push([name, toMicroseconds(from - start), stepMs, text])
  }
  if (decided !== undefined) add('policy', start, decided)
  const next = Math.min(lookup?.start ?? Number.POSITIVE_INFINITY, steps[0]?.start ?? Number.POSITIVE_INFINITY)
  if (decided !== undefined && next < Number.POSITIVE_INFINITY) add('checks', decided, next)
  if (lookup) add('cache', lookup.start, lookup.end)
  if (lookup && cache === 'joined') add('joined', lookup.end, ms === undefined ? undefined : start + ms + waits.endedMs)
  let attempt: TrailStep | undefined
  for (const step of steps.length > maxSteps ? steps.slice(0, maxSteps) : steps) {
    if (step.name === 'attempt') {
      if (attempt?.end !== undefined) add('pause', attempt.end, step.start)
      attempt = step
    }
    // A restored call has its pauses already.
    if ((step.name as string) === 'pause') attempt = undefined
    add(step.name, step.start, step.end, step.error)
  }
  // Stable: steps that begin together stay in this order. Most are in order, and sorting takes longer than looking.
  return isInOrder ? found : found.sort(([, one], [, another]) => one - another)
}

export function storedCall(record: CallRecord, redact: (text: string) => string): StoredCall {
  const summary = callSummary(record, redact)
  return { ...summary, outcome: record.outcome ?? 'failed', ms: summary.ms ?? 0, steps: stepsOf(record, redact) }
}

/** A stored call as it is shown. It is redacted again, because more secrets may be known by now. */
export function storedCallView(call: StoredCall, redact: (text: string) => string): Omit<CallTimeline, 'children'> {
  const record = restoredCall(call)
  return { ...callSummary(record, redact), steps: stepsOf(record, redact).map(stepView) }
}

function restoredCall({ parent, code, cache, steps, ...call }: StoredCall): CallRecord {
  const trail: Trail = {
    ...(cache !== null && { cache }),
    steps: steps.map(([name, startMs, ms, error]) => ({
      name: name as TrailStep['name'],
      start: startMs,
      ...(ms !== null && { end: startMs + ms }),
      ...(error !== null && { error }),
    })),
  }
  const record = { ...call, parent: parent ?? undefined, code: code ?? undefined, start: 0, trail }
  const restored = { ...record, shown: false, waiting: false, bytes: 0 } as CallRecord
  restored.bytes = bytesOf(restored)
  return restored
}
