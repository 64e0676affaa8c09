import { type Family, type FamilyOptions, type Sample, seriesOf } from './family.ts'

/** How many values were at most each bound, and what all of them come to. */
export interface Histogram {
  /** By bucket, not yet added up; the last one is for what is beyond every bound. */
  readonly counts: Float64Array
  sum: number
}

export interface HistogramFamily extends Family {
  /** The histogram of these label values, in the order of the label names; asked for once and then held. */
  of(...values: readonly string[]): Histogram
}

/** In seconds: from half a millisecond to half a minute in steps of about two, so that p50, p95 and p99 mean something. */
const durationBounds: readonly number[] = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30,
]

/** Which bucket a duration belongs to: found once for all histograms that it is counted in. */
export function bucketOf(seconds: number): number {
  let bucket = 0
  while (bucket < durationBounds.length && seconds > (durationBounds[bucket] as number)) bucket++
  return bucket
}

/** Counts a duration whose bucket is known. */
export function observe(histogram: Histogram, bucket: number, seconds: number): void {
  ;(histogram.counts[bucket] as number)++
  histogram.sum += seconds
}

/** Histograms of durations. */
export function histogramFamily(options: FamilyOptions): HistogramFamily {
  const make = (): Histogram => ({ counts: new Float64Array(durationBounds.length + 1), sum: 0 })
  const { of, all } = seriesOf(options, make)
  return {
    ...options,
    type: 'histogram',
    of,
    samples: () => all().flatMap(({ labels, series }) => samplesOf(labels, series)),
  }
}

function samplesOf(labels: string, { counts, sum }: Histogram): Sample[] {
  const before = labels === '' ? '' : `${labels},`
  let total = 0
  const buckets = boundTexts.map((bound, index): Sample => {
    total += counts[index] as number
    return { suffix: '_bucket', labels: `${before}le="${bound}"`, value: total }
  })
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }]
}

/** Always with a point, as OpenMetrics wants it, so that a bound is the same label in both formats. */
const boundTexts = [...durationBounds.map((bound) => (Number.isInteger(bound) ? `${bound}.0` : String(bound))), '+Inf']
