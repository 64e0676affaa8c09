import { other } from './labels.ts'

export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): readonly MetricSample[]
}

export interface MetricSample {
  /** Suffix of the metric name: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string
  readonly labels: string
  readonly value: number
}

export interface FamilyOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Maximum number of series; the rest share one whose labels are all `other`. */
  readonly most?: number
}

interface Labelled<Series> {
  readonly labels: string
  readonly series: Series
}

/** Bounds combinations of labels, even if each label is bounded. */
const usualMost = 2000

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

/** Callers keep a reference, so that counting is one addition: `counter.value++`. */
export interface Counter {
  value: number
}

export interface CounterFamily extends MetricFamily {
  /** Label values in the order of the label names. Look it up once and keep it. */
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

export interface Histogram {
  /** Per bucket, not cumulative; the last one counts values above all bounds. */
  readonly counts: Float64Array
  sum: number
}

interface HistogramFamily extends MetricFamily {
  /** Label values in the order of the label names. Look it up once and keep it. */
  of(...values: readonly string[]): Histogram
}

/** In seconds, from 0.5 ms to 30 s by factors of about two, for useful p50, p95 and p99. */
const durationBounds: readonly number[] = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30,
]

/** Computed once for all histograms that count the duration. */
export function bucketOf(seconds: number): number {
  let bucket = 0
  while (bucket < durationBounds.length && seconds > (durationBounds[bucket] as number)) bucket++
  return bucket
}

export function observe(histogram: Histogram, bucket: number, seconds: number): void {
  ;(histogram.counts[bucket] as number)++
  histogram.sum += seconds
}

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

/** OpenMetrics requires a decimal point; used in both formats so that the labels are equal. */
const boundTexts = [...durationBounds.map((bound) => (Number.isInteger(bound) ? `${bound}.0` : String(bound))), '+Inf']

export type MetricReading = readonly [values: readonly string[], value: number]

export interface ReadFamilyOptions extends FamilyOptions {
  readonly type: 'gauge' | 'counter'
  read(): Iterable<MetricReading>
  /** Combines readings with equal labels; adds them by default. */
  readonly merge?: (one: number, another: number) => number
}

const sum = (one: number, another: number): number => one + another

/** Reads existing values at scrape time instead of counting them again. */
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
