import type { Sample } from '../load/orders.ts'
import { doubtOfMedian, median, outliers } from './statistics.ts'

/** A figure of one turn; higher or lower is better, whichever. */
export type Metric = (sample: Sample) => number

export const callsPerSecond: Metric = ({ calls, ms }) => (1000 * calls) / ms
export const cpuMicrosPerCall: Metric = ({ calls, cpuMs }) => (1000 * cpuMs) / calls
export const p50: Metric = (sample) => sample.p50
export const p95: Metric = (sample) => sample.p95
export const p99: Metric = (sample) => sample.p99

/** One thing as a multiple of another, from turns that lay side by side. */
export interface Comparison {
  /** Median over the rounds. */
  readonly ratio: number
  readonly low: number
  readonly high: number
  /** How much of a difference this machine makes by itself, as a share: 0.05 is five per cent. */
  readonly noise: number
  /** Round by round. */
  readonly ratios: readonly number[]
  readonly outliers: number
}

/**
 * Compares round by round, so that whatever slows the machine for longer than a round slows both. The noise is what the
 * yardstick shows against itself, or what the ratios scatter by, whichever is more.
 */
export function compare(
  measured: readonly Sample[],
  yardstick: readonly [readonly Sample[], readonly Sample[]],
  metric: Metric,
): Comparison {
  const [one, other] = yardstick
  const ratios = measured.flatMap((sample, round) => {
    const bases = [one[round], other[round]].filter((base) => base !== undefined).map(metric)
    const ratio = metric(sample) / median(bases)
    return Number.isFinite(ratio) && ratio > 0 ? [ratio] : []
  })
  const logs = ratios.map(Math.log)
  return {
    ratio: median(ratios),
    low: Math.min(...ratios),
    high: Math.max(...ratios),
    noise: Math.max(noiseOf(one, other, metric), Math.expm1(doubtOfMedian(logs))),
    ratios,
    outliers: outliers(ratios).length,
  }
}

/** What the yardstick shows against itself, in a second process, as a share. */
export function noiseOf(one: readonly Sample[], other: readonly Sample[], metric: Metric): number {
  if (one === other) return 0
  const logs = one.flatMap((sample, round) => {
    const against = other[round]
    const log = against ? Math.log(metric(sample) / metric(against)) : Number.NaN
    return Number.isFinite(log) ? [log] : []
  })
  return Math.expm1(Math.abs(median(logs)) + doubtOfMedian(logs))
}
