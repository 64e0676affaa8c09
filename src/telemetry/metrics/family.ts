import { other } from './labels.ts'

/** All series of one name. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): readonly MetricSample[]
}

/** One line of the page. */
export interface MetricSample {
  /** What the name of the family is followed by: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string
  /** As they are written between braces; empty where there are none. */
  readonly labels: string
  readonly value: number
}

export interface FamilyOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** How many series there may be; the rest is one more, whose labels are all `other`. */
  readonly most?: number
}

interface Labelled<Series> {
  readonly labels: string
  readonly series: Series
}

/** Even where each label is bounded, what they come to together might not be worth a page. */
const usualMost = 2000

/** The series of a family by their labels, each made when it is first asked for. */
function seriesOf<Series>(
  { labels: names = [], most = usualMost }: FamilyOptions,
  make: () => Series,
): { of(...values: readonly string[]): Series; all(): Labelled<Series>[] } {
  const known = new Map<string, Series>()
  const made = (labels: string): Series => {
    const series = make()
    known.set(labels, series)
    return series
  }
  const rest = labelsText(
    names,
    names.map(() => other),
  )
  return {
    of(...values) {
      const labels = labelsText(names, values)
      const before = known.get(labels)
      if (before !== undefined) return before
      return known.size < most ? made(labels) : (known.get(rest) ?? made(rest))
    },
    all: () => [...known].map(([labels, series]) => ({ labels, series })),
  }
}

/** `tool="files.read",error="TIMEOUT"`. */
const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, index) => `${name}="${escaped(values[index] as string)}"`).join(',')

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

const escaped = (value: string): string => value.replace(/[\\"\n]/g, (character) => escapes[character] as string)

/** Held by whoever counts, which makes counting one addition: `counter.value++`. */
export interface Counter {
  value: number
}

export interface CounterFamily extends MetricFamily {
  /** The counter of these label values, in the order of the label names; asked for once and then held. */
  of(...values: readonly string[]): Counter
}

export function counterFamily(options: FamilyOptions): CounterFamily {
  const { of, all } = seriesOf(options, (): Counter => ({ value: 0 }))
  return {
    ...options,
    type: 'counter',
    of,
    samples: () => all().map(({ labels, series }): MetricSample => ({ labels, value: series.value })),
  }
}

/** How many values were at most each bound, and what all of them come to. */
export interface Histogram {
  /** By bucket, not yet added up; the last one is for what is beyond every bound. */
  readonly counts: Float64Array
  sum: number
}

interface HistogramFamily extends MetricFamily {
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

function samplesOf(labels: string, { counts, sum }: Histogram): MetricSample[] {
  const before = labels === '' ? '' : `${labels},`
  let total = 0
  const buckets = boundTexts.map((bound, index): MetricSample => {
    total += counts[index] as number
    return { suffix: '_bucket', labels: `${before}le="${bound}"`, value: total }
  })
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }]
}

/** Always with a point, as OpenMetrics wants it, so that a bound is the same label in both formats. */
const boundTexts = [...durationBounds.map((bound) => (Number.isInteger(bound) ? `${bound}.0` : String(bound))), '+Inf']

/** Label values, in the order of the label names, and what is read for them. */
export type MetricReading = readonly [values: readonly string[], value: number]

export interface ReadFamilyOptions extends FamilyOptions {
  readonly type: 'gauge' | 'counter'
  /** Asked whenever the page is. */
  read(): Iterable<MetricReading>
  /** What becomes of readings whose labels turn out to be the same; they are added up unless told otherwise. */
  readonly merge?: (one: number, another: number) => number
}

const sum = (one: number, another: number): number => one + another

/** What somebody else knows already is not counted twice, but read when it is wanted. */
export function readFamily({ read, merge = sum, ...options }: ReadFamilyOptions): MetricFamily {
  const { labels: names = [] } = options
  return {
    ...options,
    samples() {
      const merged = new Map<string, number>()
      for (const [values, value] of read()) {
        const labels = labelsText(names, values)
        const before = merged.get(labels)
        merged.set(labels, before === undefined ? value : merge(before, value))
      }
      return [...merged].map(([labels, value]) => ({ labels, value }))
    },
  }
}
