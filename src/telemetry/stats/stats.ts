import type { Trail } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Entry } from '../../core/entry.ts'
import { type Run, type TallyCounts, type tallyGroups, tallyNumbers } from '../../core/history.ts'
import { type Observed, type Observer, statisticsOperation } from '../../core/observer.ts'
import type { CallOutcome } from '../../core/outcome.ts'
import {
  addLatencies,
  addPacked,
  createLatencies,
  type Latencies,
  latencyBucket,
  type Packed,
  pack,
  percentile,
} from '../../lib/latency-histogram.ts'
import { other, safeRedact } from '../metrics/family.ts'

export type By = keyof typeof tallyGroups

/** Figures by name, sorted by number of calls, highest first. */
export interface StatsTable {
  readonly by: By
  /** The period that the figures cover. */
  readonly since: number
  readonly to: number
  readonly rows: readonly (CallFigures & { readonly name: string })[]
}

export interface CallStats {
  readonly observer: Observer
  table(by: By): StatsTable
  /** The figures for one agent, server, operation or tool (`server.name`). All zeros if it was never called. */
  of(by: By, name: string): CallFigures
  total(): CallFigures
  /** The figures for the last `ms`. */
  recent(ms: number): CallFigures
  series(from: number, to: number): CallSeries
}

export interface CallStatsOptions {
  readonly clock: Clock
  redact(text: string): string
}

/** Counts calls and durations by agent and operation, by server and by tool: since the start, and over time (G9). */
export function createStats({ clock, redact }: CallStatsOptions): CallStats {
  const since = clock.now()
  const start = clock.monotonic()
  const shown = safeRedact(redact)
  const all = createTally()
  const history = createHistory()
  // Each name takes two kilobytes, so all names together take at most five megabytes.
  const tallies = { server: createTallies(250), tool: createTallies(1000) }
  const pairs = createPairTallies(1000)
  const talliesBy = (by: By): ReadonlyMap<string, Tally> =>
    by === 'server' || by === 'tool' ? tallies[by].known : pairs.sums(by)
  const known = new WeakMap<Entry, { readonly server: Tally; readonly tool: Tally | undefined }>()
  const talliesOf = (entry: Entry) => {
    const tool = entry.kind === 'tool' ? tallies.tool.of(`${entry.server}.${entry.name}`) : undefined
    const own = { server: tallies.server.of(entry.server), tool }
    known.set(entry, own)
    return own
  }
  const soFar = ({ counts, latencies }: Tally): CallFigures => figuresOf(counts, latencies, clock.monotonic() - start)

  return {
    observer: {
      ended(observed) {
        const { call, operation, ms, outcome, trail } = observed
        const bucket = latencyBucket(ms)
        const { server, tool } = known.get(call.entry) ?? talliesOf(call.entry)
        const add = ({ counts, latencies }: Tally) => {
          if (count(counts, outcome.kind, trail.cache, ms)) latencies[bucket] = (latencies[bucket] as number) + 1
        }
        add(all)
        add(pairs.of(call.caller.agent, statisticsOperation(operation, call.entry.server, call.entry.name)))
        add(server)
        if (tool !== undefined && operation === 'call_tool') add(tool)
        history.add(clock.now(), observed, bucket)
      },
    },
    table: (by) => ({
      by,
      since,
      to: clock.now(),
      rows: [...talliesBy(by)]
        .map(([name, tally]) => ({ name: shown(name), ...soFar(tally) }))
        .sort((one, another) => another.calls - one.calls),
    }),
    of: (by, name) => soFar(talliesBy(by).get(name) ?? createTally()),
    total: () => soFar(all),
    recent(ms) {
      // Shortly after the start, do not count the time before the start as idle.
      return history.figures(ms, clock.now(), Math.min(ms, clock.monotonic() - start))
    },
    series: (from, to) => history.series(from, to, clock.now(), since),
  }
}

interface Tally {
  readonly counts: CallCounts
  readonly latencies: Latencies
}

const createTally = (): Tally => ({ counts: noCounts(), latencies: createLatencies() })

/** Max characters per name. Longer strings are not names. */
const maxName = 1000

/** Counts calls by name. Callers may make names up, so their number is limited; all further names count as `other`. */
function createTallies(maxNames: number) {
  const known = new Map<string, Tally>()
  const add = (name: string): Tally => {
    const tally = createTally()
    known.set(name, tally)
    return tally
  }
  return {
    of(name: string): Tally {
      const before = known.get(name)
      if (before !== undefined) return before
      const hasRoom = known.size < maxNames && name.length <= maxName
      return hasRoom ? add(name) : (known.get(other) ?? add(other))
    },
    known: known as ReadonlyMap<string, Tally>,
  }
}

type PairGroup = Exclude<By, 'server' | 'tool'>

const pairNames: Readonly<Record<PairGroup, (agent: string, operation: string) => string>> = {
  agent: (agent) => agent,
  operation: (_, operation) => operation,
  'agent-operation': (agent, operation) => `${agent}.${operation}`,
}

/** Counts calls by agent and operation. Further pairs beyond the maximum count as `other`. */
function createPairTallies(maxPairs: number) {
  const known = new Map<string, Map<string, Tally>>()
  let size = 0
  const add = (agent: string, operation: string): Tally => {
    const tally = createTally()
    const operations = known.get(agent) ?? new Map<string, Tally>()
    known.set(agent, operations.set(operation, tally))
    size++
    return tally
  }
  return {
    of(agent: string, operation: string): Tally {
      const before = known.get(agent)?.get(operation)
      if (before !== undefined) return before
      const hasRoom = size < maxPairs && agent.length <= maxName && operation.length <= maxName
      return hasRoom ? add(agent, operation) : (known.get(other)?.get(other) ?? add(other, other))
    },
    sums(by: PairGroup): ReadonlyMap<string, Tally> {
      const sums = new Map<string, Tally>()
      for (const [agent, operations] of known) {
        for (const [operation, { counts, latencies }] of operations) {
          const name = pairNames[by](agent, operation)
          const sum = sums.get(name) ?? createTally()
          for (const key of tallyNumbers) sum.counts[key] += counts[key]
          addLatencies(sum.latencies, latencies)
          sums.set(name, sum)
        }
      }
      return sums
    },
  }
}

/** Figures over time, oldest first. Steps without calls are included. */
export interface CallSeries {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly points: readonly Point[]
}

export interface Point extends CallFigures {
  readonly at: number
  readonly toolErrors: number
  readonly cacheHits: number
  readonly cacheMisses: number
  /** The average duration of the calls that were answered from the cache. */
  readonly hitMs: number | null
  /** Set if nothing is known of the step, because Toolway did not run. */
  readonly gap?: true
}

/** A series with a point for each step. Those without calls in which no process ran are gaps. */
export function seriesOf(
  { from, to }: Pick<CallSeries, 'from' | 'to'>,
  stepMs: number,
  runs: readonly Run[],
  pointAt: (at: number) => Point,
): CallSeries {
  const points: Point[] = []
  for (let at = Math.floor(from / stepMs) * stepMs; at < to; at += stepMs) {
    const point = pointAt(at)
    const isKnown = point.calls > 0 || runs.some(([startedAt, seenAt]) => startedAt < at + stepMs && at <= seenAt)
    points.push(isKnown ? point : { ...point, gap: true })
  }
  return { from, to, stepMs, points }
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Max points per series: about the width of a chart in pixels. */
export const maxPoints = 1000

/** Counts calls over time, in steps of seconds for 15 minutes, of minutes for a day, and of hours for 30 days. */
export function createHistory() {
  const rings = [createRing(second, 15 * 60), createRing(minute, 24 * 60), createRing(hour, 30 * 24)] as const
  const ringFor = (from: number, now: number): Ring => rings.find(({ spanMs }) => from >= now - spanMs) ?? rings[2]

  return {
    add(now: number, observed: Observed, bucket: number): void {
      for (const ring of rings) ring.add(now, observed, bucket)
    },
    /** A series at the finest resolution that is still available, with at most `maxPoints` points. */
    series(from: number, to: number, now: number, since = Number.NEGATIVE_INFINITY): CallSeries {
      const ring = ringFor(from, now)
      const stepMs = ring.stepMs * Math.max(1, Math.ceil((to - from) / ring.stepMs / maxPoints))
      const latencies = createLatencies()
      return seriesOf({ from, to }, stepMs, [[since, now]], (at) => {
        const step = noCounts()
        latencies.fill(0)
        ring.collect(at, at + stepMs, step, latencies)
        return pointOf(at, step, latencies, stepMs)
      })
    },
    /** The figures for the last `ms`, in whole steps. The rate is the average over `duringMs`. */
    figures(ms: number, now: number, duringMs: number): CallFigures {
      const step = noCounts()
      const latencies = createLatencies()
      // Include the current step.
      ringFor(now - ms, now).collect(now - ms, now + 1, step, latencies)
      return figuresOf(step, latencies, duringMs)
    },
  }
}

export type Ring = ReturnType<typeof createRing>

interface RingStep extends CallCounts {
  number: number
  /** The packed latencies. Undefined for the current step. */
  packed: Packed | undefined
}

export function createRing(stepMs: number, steps: number) {
  const ring = new Array<RingStep | undefined>(steps)
  // Only the current step has all buckets. The buckets of older steps are packed, because most are empty.
  const latencies = createLatencies()
  let live: RingStep | undefined
  let newest = 0

  /** Makes another step the current one. It is an earlier step if the clock was set back. */
  const turnTo = (number: number): RingStep => {
    if (live) live.packed = pack(latencies)
    latencies.fill(0)
    const before = ring[number % steps]
    const step = before?.number === number ? before : { ...noCounts(), number, packed: undefined }
    if (step.packed) addPacked(latencies, step.packed)
    step.packed = undefined
    ring[number % steps] = step
    live = step
    newest = number
    return step
  }

  return {
    stepMs,
    spanMs: stepMs * steps,
    add(now: number, { ms, outcome, trail }: Observed, bucket: number): void {
      const number = Math.floor(now / stepMs)
      const step = live?.number === number ? live : turnTo(number)
      if (count(step, outcome.kind, trail.cache, ms)) latencies[bucket] = (latencies[bucket] as number) + 1
    },
    /** Adds all steps that begin in the interval to `into` and `sum`. */
    collect(from: number, to: number, into: CallCounts, sum: Latencies): void {
      const first = Math.max(Math.ceil(from / stepMs), newest - steps + 1)
      const last = Math.min(Math.ceil(to / stepMs) - 1, newest)
      for (let number = first; number <= last; number++) {
        const step = ring[number % steps]
        if (step?.number !== number) continue
        for (const key of tallyNumbers) into[key] += step[key]
        if (step.packed) addPacked(sum, step.packed)
        else addLatencies(sum, latencies)
      }
    },
  }
}

/**
 * `errors` are failures caused by the gateway, the server or the tool; `toolErrors` those that the tool reported.
 * `sumMs` is the total duration of the calls whose latency counts, `hitMs` that of the cache hits.
 */
export type CallCounts = TallyCounts

export function noCounts(): CallCounts {
  return { calls: 0, errors: 0, toolErrors: 0, denials: 0, cacheHits: 0, cacheMisses: 0, sumMs: 0, hitMs: 0 }
}

/**
 * Counts a call. Returns whether its latency counts: denials and cache hits take hardly any time and would hide how long
 * the servers take.
 */
export function count(counts: CallCounts, kind: CallOutcome['kind'], cache: Trail['cache'], ms: number): boolean {
  counts.calls++
  if (cache === 'miss') counts.cacheMisses++
  if (kind === 'denied') {
    counts.denials++
    return false
  }
  if (kind !== 'answered') counts.errors++
  if (kind === 'tool_error') counts.toolErrors++
  if (cache === 'hit') {
    counts.cacheHits++
    counts.hitMs += ms
    return false
  }
  counts.sumMs += ms
  return true
}

/**
 * Figures about calls. Averages and percentiles cover neither denied calls nor cache hits, and are null if there were no
 * other calls.
 */
export interface CallFigures {
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly perSecond: number
  readonly averageMs: number | null
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

export function figuresOf(
  { calls, errors, denials, cacheHits, sumMs }: CallCounts,
  latencies: Latencies,
  ms: number,
): CallFigures {
  const timed = calls - denials - cacheHits
  const rounded = (part: number) => round(percentile(latencies, timed, part))
  return {
    ...{ calls, errors, denials },
    perSecond: ms > 0 ? (calls * 1000) / ms : 0,
    averageMs: timed === 0 ? null : round(sumMs / timed),
    p50Ms: rounded(0.5),
    p95Ms: rounded(0.95),
    p99Ms: rounded(0.99),
  }
}

export function pointOf(at: number, counts: CallCounts, latencies: Latencies, stepMs: number): Point {
  const { toolErrors, cacheHits, cacheMisses, hitMs } = counts
  const averageHit = cacheHits === 0 ? null : round(hitMs / cacheHits)
  return { at, ...figuresOf(counts, latencies, stepMs), toolErrors, cacheHits, cacheMisses, hitMs: averageHit }
}

/** Rounds to four significant digits, because more would suggest false precision. */
const round = (ms: number | null): number | null => (ms === null ? null : Number(ms.toPrecision(4)))
