import { errorKinds } from '../../core/errors.ts'
import { shorten } from '../../lib/message-text.ts'

export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): readonly MetricSample[]
}

export interface MetricSample {
  /** The suffix on the metric name: `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string
  readonly labels: string
  readonly value: number
}

export interface FamilyOptions extends Pick<MetricFamily, 'name' | 'help'> {
  readonly labels?: readonly string[]
  /** Max number of series. Beyond that, all new label combinations share one series whose labels are all `other`. */
  readonly maxSeries?: number
}

interface SeriesFamily<Series> extends MetricFamily {
  /** The series for these label values, given in the order of the label names. Look it up once and keep it. */
  of(...values: readonly string[]): Series
}

/** Creates a family of series. Limits the combinations of labels, which can be many even if each label is limited. */
function seriesFamily<Series>(
  { labels: names = [], maxSeries = 2000, name, help }: FamilyOptions,
  type: MetricFamily['type'],
  create: () => Series,
  samplesOf: (labels: string, series: Series) => MetricSample[],
): SeriesFamily<Series> {
  const known = new Map<string, Series>()
  const add = (labels: string): Series => {
    const series = create()
    known.set(labels, series)
    return series
  }
  const rest = labelsText(names, Array(names.length).fill(other))
  return {
    ...{ name, help, type },
    of(...values) {
      const labels = labelsText(names, values)
      const before = known.get(labels)
      if (before !== undefined) return before
      return known.size < maxSeries ? add(labels) : (known.get(rest) ?? add(rest))
    },
    samples: () => [...known].flatMap(([labels, series]) => samplesOf(labels, series)),
  }
}

/** Formats labels like `tool="files.read",error="TIMEOUT"`. */
const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, index) => `${name}="${escaped(values[index] as string)}"`).join(',')

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

const escaped = (value: string): string => value.replace(/[\\"\n]/g, (character) => escapes[character] as string)

/** A counter. Callers keep a reference to it, so that counting is one addition: `counter.value++`. */
export interface Counter {
  value: number
}

export type CounterFamily = SeriesFamily<Counter>

export const counterFamily = (options: FamilyOptions): CounterFamily =>
  seriesFamily(
    options,
    'counter',
    () => ({ value: 0 }),
    (labels, { value }) => [{ labels, value }],
  )

export interface Histogram {
  /** The count of each bucket, not cumulative. The last bucket counts values above all bounds. */
  readonly counts: Float64Array
  sum: number
}

/** Bucket bounds in seconds, by factors of about two: fine enough for p50, p95 and p99. */
const durationBounds: readonly number[] = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30,
]

/** The bucket for a duration. Computed once per call, for all histograms that count the call. */
export function bucketOf(seconds: number): number {
  let bucket = 0
  while (bucket < durationBounds.length && seconds > (durationBounds[bucket] as number)) bucket++
  return bucket
}

export function observe(histogram: Histogram, bucket: number, seconds: number): void {
  ;(histogram.counts[bucket] as number)++
  histogram.sum += seconds
}

export function histogramFamily(options: FamilyOptions): SeriesFamily<Histogram> {
  const create = (): Histogram => ({ counts: new Float64Array(durationBounds.length + 1), sum: 0 })
  return seriesFamily(options, 'histogram', create, histogramSamples)
}

function histogramSamples(labels: string, { counts, sum }: Histogram): MetricSample[] {
  const before = labels === '' ? '' : `${labels},`
  let total = 0
  const buckets = boundTexts.map((bound, index): MetricSample => {
    total += counts[index] as number
    return { suffix: '_bucket', labels: `${before}le="${bound}"`, value: total }
  })
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }]
}

/** The bounds as labels, with the decimal point that OpenMetrics requires, so that both formats have equal labels. */
const boundTexts = [...durationBounds.map((bound) => (Number.isInteger(bound) ? `${bound}.0` : String(bound))), '+Inf']

export type MetricReading = readonly [values: readonly string[], value: number]

export interface ReadFamilyOptions extends FamilyOptions {
  readonly type: 'gauge' | 'counter'
  read(): Iterable<MetricReading>
  /** Combines readings with equal labels. By default, they are added. */
  readonly merge?: (one: number, another: number) => number
}

const sum = (one: number, another: number): number => one + another

/** A family that reads existing values when the page is requested, instead of counting them again. */
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

/** Converts names to label values. One registry per kind of name, so that a tool has the same label everywhere. */
export interface Labels {
  tool(name: string): string
  server(name: string): string
  agent(name: string): string
  /** The label for an error code, which is defined by Toolway or by a server. */
  error(code: string): string
  operation(name: string): string
}

/** The label for failures that a tool itself reports, used instead of an error code. */
export const toolError = 'tool_error'

/** Creates the label registries with their limits. A tool takes about twenty lines of the page, mostly buckets. */
export const createLabels = (redact: (text: string) => string): Labels => ({
  tool: labelValues({ max: 200, redact }),
  server: labelValues({ max: 200, redact }),
  agent: labelValues({ max: 100, redact }),
  // Toolway's own codes always have a label, even if servers make up many codes.
  error: labelValues({ max: 60, own: [...Object.keys(errorKinds), toolError], redact }),
  operation: labelValues({ max: 30, redact }),
})

export const other = 'other'

/** Max characters per label, to limit the size of the page. Longer names are truncated. */
const maxLabel = 120
/** Max characters per name. Longer strings are not names and are not cached. */
const maxName = 1000

interface LabelValuesOptions {
  readonly max: number
  /** Toolway's own names. They have a label from the start and are not redacted. */
  readonly own?: readonly string[]
  redact(text: string): string
}

/** Assigns labels to names until the maximum is reached, then `other`. A name keeps its first label. */
export function labelValues({ max, own = [], redact }: LabelValuesOptions): (name: string) => string {
  const known = new Map<string, string>(own.map((name) => [name, name]))
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    // Do not cache names beyond the maximum, because their number is unlimited.
    if (known.size >= max || name.length > maxName) return other
    // Without lone surrogates: UTF-8 would replace them later, which could merge two series.
    const value = shorten(redact(name), maxLabel)
    known.set(name, value)
    return value
  }
}

/** Redacts a string. If that fails, drops the string, so that no secret leaks and the observed call does not fail. */
export const safeRedact =
  (redact: (text: string) => string): ((text: string) => string) =>
  (text) => {
    try {
      return redact(text)
    } catch {
      return 'dropped'
    }
  }

export interface ExpositionPage {
  readonly contentType: string
  readonly body: string
}

/** The metrics page, in the Prometheus text format unless the Accept header prefers OpenMetrics. */
export const pageOf = (families: readonly MetricFamily[], accept = ''): ExpositionPage =>
  wantsOpenMetrics(accept)
    ? { contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8', body: openMetrics(families) }
    : { contentType: 'text/plain; version=0.0.4; charset=utf-8', body: prometheusText(families) }

const prometheusText = (families: readonly MetricFamily[]): string =>
  families.map((family) => written(family, family.name, '')).join('')

/** The OpenMetrics page, where the suffix `_total` belongs to a counter's samples but not to its name. */
const openMetrics = (families: readonly MetricFamily[]): string =>
  families
    .map((family) =>
      family.type === 'counter'
        ? written(family, family.name.replace(/_total$/, ''), '_total')
        : written(family, family.name, ''),
    )
    .join('') + '# EOF\n'

/** Whether the Accept header prefers OpenMetrics. If the weights are equal, OpenMetrics wins. */
function wantsOpenMetrics(accept: string): boolean {
  const weights = new Map(accept.split(',').map(weighed))
  const open = weights.get('application/openmetrics-text') ?? 0
  return open > 0 && open >= (weights.get('text/plain') ?? 0)
}

function weighed(range: string): [type: string, weight: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  return [type, weight === undefined ? 1 : Number(weight.slice(2))]
}

/** The text of one family. A family without samples is written too, so that people can find its name. */
function written({ help, type, samples }: MetricFamily, name: string, suffix: string): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
  for (const sample of samples()) text += line(name, sample.suffix ?? suffix, sample)
  return text
}

const line = (name: string, suffix: string, { labels, value }: MetricSample): string =>
  `${name}${suffix}${labels === '' ? '' : `{${labels}}`} ${valueText(value)}\n`

function valueText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
