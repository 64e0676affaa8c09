import type { Counts } from './counts.ts'
import { type Latencies, percentile } from './latencies.ts'

/** Counts and times of a stretch of time. Percentiles are null where nothing was called. */
export interface Figures {
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly perSecond: number
  readonly averageMs: number | null
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

/** What was counted in so many milliseconds, as people read it. */
export function figuresOf({ calls, errors, denials, sumMs }: Counts, latencies: Latencies, ms: number): Figures {
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

/** Four digits: the rest would only pretend to be known. */
const round = (ms: number | null): number | null => (ms === null ? null : Number(ms.toPrecision(4)))
