import type { Observed } from '../../core/observer.ts'
import {
  addCounts,
  addLatencies,
  addPacked,
  type CallCounts,
  type CallFigures,
  count,
  createLatencies,
  figuresOf,
  type Latencies,
  noCounts,
  type Packed,
  pack,
} from './latencies.ts'

/** Oldest first; steps without calls are included. */
export interface CallSeries {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly points: readonly Point[]
}

export interface Point extends CallFigures {
  readonly at: number
  readonly cacheHits: number
  readonly cacheMisses: number
}

export interface History {
  add(now: number, observed: Observed, bucket: number): void
  /** In the finest resolution still available, with at most `maxPoints` points. */
  series(from: number, to: number, now: number): CallSeries
  /** Figures of the last `ms`, in whole steps; the rate is per second of `duringMs`. */
  figures(ms: number, now: number, duringMs: number): CallFigures
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** About the width of a chart in pixels. */
const maxPoints = 1000

/** Resolution: seconds for 15 minutes, minutes for a day, hours for 30 days. */
export function createHistory(): History {
  const rings = [createRing(second, 15 * 60), createRing(minute, 24 * 60), createRing(hour, 30 * 24)] as const
  const ringFor = (from: number, now: number): Ring => rings.find(({ spanMs }) => from >= now - spanMs) ?? rings[2]

  return {
    add(now, observed, bucket) {
      for (const ring of rings) ring.add(now, observed, bucket)
    },
    series(from, to, now) {
      const ring = ringFor(from, now)
      const stepMs = ring.stepMs * Math.max(1, Math.ceil((to - from) / ring.stepMs / maxPoints))
      const latencies = createLatencies()
      const points: Point[] = []
      for (let at = Math.floor(from / stepMs) * stepMs; at < to; at += stepMs) {
        const step = noStep()
        latencies.fill(0)
        ring.collect(at, at + stepMs, step, latencies)
        const { cacheHits, cacheMisses } = step
        points.push({ at, ...figuresOf(step, latencies, stepMs), cacheHits, cacheMisses })
      }
      return { from, to, stepMs, points }
    },
    figures(ms, now, duringMs) {
      const step = noStep()
      const latencies = createLatencies()
      // Includes the current step.
      ringFor(now - ms, now).collect(now - ms, now + 1, step, latencies)
      return figuresOf(step, latencies, duringMs)
    },
  }
}

interface Step extends CallCounts {
  cacheHits: number
  cacheMisses: number
}

export const noStep = (): Step => ({ ...noCounts(), cacheHits: 0, cacheMisses: 0 })

export interface Ring {
  readonly stepMs: number
  readonly spanMs: number
  add(now: number, observed: Observed, bucket: number): void
  /** Adds up all steps that begin in the interval. */
  collect(from: number, to: number, into: Step, latencies: Latencies): void
}

interface Kept extends Step {
  number: number
  /** Undefined for the current step. */
  packed: Packed | undefined
}

export function createRing(stepMs: number, steps: number): Ring {
  const kept = new Array<Kept | undefined>(steps)
  // Only the current step has all buckets; those of older ones are packed, because most are empty.
  const latencies = createLatencies()
  let live: Kept | undefined
  let newest = 0

  /** Also goes back: calls must still be counted after a clock was set back. */
  const turnTo = (number: number): Kept => {
    if (live) live.packed = pack(latencies)
    latencies.fill(0)
    const place = number % steps
    const before = kept[place]
    if (before?.number === number && before.packed) addPacked(latencies, before.packed)
    const step = before?.number === number ? before : { ...noStep(), number, packed: undefined }
    step.packed = undefined
    kept[place] = step
    live = step
    newest = number
    return step
  }

  return {
    stepMs,
    spanMs: stepMs * steps,
    add(now, { ms, outcome, trail }, bucket) {
      const number = Math.floor(now / stepMs)
      const step = live?.number === number ? live : turnTo(number)
      count(step, latencies, outcome.kind, ms, bucket)
      if (trail.cache === 'hit') step.cacheHits++
      else if (trail.cache === 'miss') step.cacheMisses++
    },
    collect(from, to, into, sum) {
      const first = Math.max(Math.ceil(from / stepMs), newest - steps + 1)
      const last = Math.min(Math.ceil(to / stepMs) - 1, newest)
      for (let number = first; number <= last; number++) {
        const step = kept[number % steps]
        if (step?.number !== number) continue
        addCounts(into, step)
        into.cacheHits += step.cacheHits
        into.cacheMisses += step.cacheMisses
        if (step.packed) addPacked(sum, step.packed)
        else addLatencies(sum, latencies)
      }
    },
  }
}
