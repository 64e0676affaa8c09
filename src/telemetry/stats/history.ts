import type { CallOutcome, Observed } from '../../core/observer.ts'

/** Figures over time, oldest first. Steps without calls are included. */
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

export type History = ReturnType<typeof createHistory>

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Max points per series: about the width of a chart in pixels. */
const maxPoints = 1000

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
        const step = noStep()
        latencies.fill(0)
        ring.collect(at, at + stepMs, step, latencies)
        const { cacheHits, cacheMisses } = step
        points.push({ at, ...figuresOf(step, latencies, stepMs), cacheHits, cacheMisses })
      }
      return { from, to, stepMs, points }
    },
    /** The figures for the last `ms`, in whole steps. The rate is the average over `duringMs`. */
    figures(ms: number, now: number, duringMs: number): CallFigures {
      const step = noStep()
      const latencies = createLatencies()
      // Include the current step.
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

const counted = ['calls', 'errors', 'denials', 'sumMs', 'cacheHits', 'cacheMisses'] as const

export type Ring = ReturnType<typeof createRing>

interface RingStep extends Step {
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
    const step = before?.number === number ? before : { ...noStep(), number, packed: undefined }
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
      count(step, latencies, outcome.kind, ms, bucket)
      if (trail.cache === 'hit') step.cacheHits++
      else if (trail.cache === 'miss') step.cacheMisses++
    },
    /** Adds all steps that begin in the interval to `into` and `sum`. */
    collect(from: number, to: number, into: Step, sum: Latencies): void {
      const first = Math.max(Math.ceil(from / stepMs), newest - steps + 1)
      const last = Math.min(Math.ceil(to / stepMs) - 1, newest)
      for (let number = first; number <= last; number++) {
        const step = ring[number % steps]
        if (step?.number !== number) continue
        for (const key of counted) into[key] += step[key]
        if (step.packed) addPacked(sum, step.packed)
        else addLatencies(sum, latencies)
      }
    },
  }
}

/** A histogram with exponential buckets, which takes two kilobytes. Percentiles are accurate to two percent. */
export type Latencies = Uint32Array

/** The relative error, slightly less than the promised two percent. */
const error = 0.019
const growth = (1 + error) / (1 - error)
const perUnit = 1 / Math.log(growth)
/** The range of durations in milliseconds. Durations outside this range are clamped. */
const minMs = 0.01
const maxMs = 3_600_000

const latencyBuckets = Math.ceil(Math.log(maxMs / minMs) * perUnit) + 1

export const createLatencies = (): Latencies => new Uint32Array(latencyBuckets)

/** The bucket for a duration. Computed once per call, for all histograms that count the call. */
export function latencyBucket(ms: number): number {
  if (!(ms > minMs)) return 0
  return Math.min(Math.ceil(Math.log(ms / minMs) * perUnit), latencyBuckets - 1)
}

export function addLatencies(to: Latencies, more: Latencies): void {
  for (let bucket = 0; bucket < latencyBuckets; bucket++) {
    to[bucket] = (to[bucket] as number) + (more[bucket] as number)
  }
}

/** The value with the same relative distance to both bounds of a bucket. */
const middleOf = (bucket: number): number => (minMs * growth ** bucket * 2) / (growth + 1)

export function percentile(latencies: Latencies, count: number, part: number): number | null {
  if (count === 0) return null
  let rank = Math.max(1, Math.ceil(part * count))
  for (let bucket = 0; bucket < latencies.length; bucket++) {
    rank -= latencies[bucket] as number
    if (rank <= 0) return middleOf(bucket)
  }
  return middleOf(latencies.length - 1)
}

/** Pairs of bucket and count. Empty buckets are omitted. */
type Packed = Uint32Array

export function pack(latencies: Latencies): Packed {
  const packed: number[] = []
  for (const [bucket, count] of latencies.entries()) if (count > 0) packed.push(bucket, count)
  return Uint32Array.from(packed)
}

export function addPacked(latencies: Latencies, packed: Packed): void {
  for (let at = 0; at < packed.length; at += 2) {
    const bucket = packed[at] as number
    latencies[bucket] = (latencies[bucket] as number) + (packed[at + 1] as number)
  }
}

export interface CallCounts {
  calls: number
  /** The number of failures caused by the gateway, the server or the tool. */
  errors: number
  denials: number
  /** The total duration of the calls. Excludes denied calls: a denial takes no time and would distort the average. */
  sumMs: number
}

export const noCounts = (): CallCounts => ({ calls: 0, errors: 0, denials: 0, sumMs: 0 })

export function count(
  counts: CallCounts,
  latencies: Latencies,
  kind: CallOutcome['kind'],
  ms: number,
  bucket: number,
): void {
  counts.calls++
  if (kind === 'denied') {
    counts.denials++
    return
  }
  if (kind !== 'answered') counts.errors++
  counts.sumMs += ms
  latencies[bucket] = (latencies[bucket] as number) + 1
}

/** Figures about calls. Averages and percentiles are null if there were no calls. */
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
  { calls, errors, denials, sumMs }: CallCounts,
  latencies: Latencies,
  ms: number,
): CallFigures {
  const timed = calls - denials
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

/** Rounds to four significant digits, because more would suggest false precision. */
const round = (ms: number | null): number | null => (ms === null ? null : Number(ms.toPrecision(4)))
