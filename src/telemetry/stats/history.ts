import type { Trail } from '../../core/call.ts'
import { type TallyCounts, tallyNumbers } from '../../core/history.ts'
import type { CallOutcome, Observed } from '../../core/observer.ts'
import {
  addLatencies,
  addPacked,
  createLatencies,
  type Latencies,
  type Packed,
  pack,
  percentile,
} from '../../lib/latency-histogram.ts'

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
}

export type History = ReturnType<typeof createHistory>

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
    series(from: number, to: number, now: number): CallSeries {
      const ring = ringFor(from, now)
      const stepMs = ring.stepMs * Math.max(1, Math.ceil((to - from) / ring.stepMs / maxPoints))
      const latencies = createLatencies()
      const points: Point[] = []
      for (let at = Math.floor(from / stepMs) * stepMs; at < to; at += stepMs) {
        const step = noCounts()
        latencies.fill(0)
        ring.collect(at, at + stepMs, step, latencies)
        points.push(pointOf(at, step, latencies, stepMs))
      }
      return { from, to, stepMs, points }
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
