import type { Series } from '../../../src/admin/contract.ts'
import { formatDuration } from '../format/duration.ts'
import { formatCount, formatRate } from '../format/number.ts'

export type Point = Series['points'][number]

/** A line in a chart. Lines differ in dash pattern as well as colour, for people who cannot tell the colours apart. */
export interface Line {
  readonly name: string
  readonly colour: `--series-${1 | 2 | 3 | 4}`
  readonly dash?: readonly number[]
  readonly fill?: boolean
  readonly value: (point: Point) => number | null
}

/** The value of a line; null if there is none, which is a gap in the chart. */
export const valueAt = ({ value }: Line, point: Point): number | null => (point.gap ? null : value(point))

export interface Chart {
  readonly title: string
  readonly lines: readonly Line[]
  readonly format: (value: number) => string
  /** Set if the values are counts, so that the axis has no fractional labels. */
  readonly integer?: true
  /** Set if the values differ by orders of magnitude. */
  readonly logarithmic?: true
  /** Set if the lines add up to a whole. Each line is drawn on top of those before it. */
  readonly stacked?: true
}

const dashed = [6, 4] as const
const dotted = [2, 3] as const
const mixed = [10, 3, 2, 3] as const

/** The rate of the calls with one outcome. */
const rateOf =
  (count: (point: Point) => number) =>
  (point: Point): number =>
    point.calls === 0 ? 0 : (point.perSecond * count(point)) / point.calls

export const charts: readonly Chart[] = [
  {
    title: 'Calls per second',
    format: formatRate,
    stacked: true,
    lines: [
      {
        name: 'answered',
        colour: '--series-1',
        fill: true,
        value: rateOf(({ calls, errors, denials }) => calls - errors - denials),
      },
      {
        name: 'tool errors',
        colour: '--series-2',
        dash: dashed,
        fill: true,
        value: rateOf(({ toolErrors }) => toolErrors),
      },
      { name: 'denied', colour: '--series-4', dash: mixed, fill: true, value: rateOf(({ denials }) => denials) },
      {
        name: 'failed',
        colour: '--series-3',
        dash: dotted,
        fill: true,
        value: rateOf(({ errors, toolErrors }) => errors - toolErrors),
      },
    ],
  },
  {
    title: 'Latency',
    format: formatDuration,
    logarithmic: true,
    lines: [
      { name: 'p50', colour: '--series-1', value: ({ p50Ms }) => p50Ms },
      { name: 'p95', colour: '--series-2', dash: dashed, value: ({ p95Ms }) => p95Ms },
      { name: 'p99', colour: '--series-3', dash: dotted, value: ({ p99Ms }) => p99Ms },
      { name: 'cache hits', colour: '--series-4', dash: mixed, value: ({ hitMs }) => hitMs },
    ],
  },
  {
    title: 'Errors and denials',
    format: formatCount,
    integer: true,
    lines: [
      { name: 'errors', colour: '--series-3', fill: true, value: ({ errors }) => errors },
      { name: 'denials', colour: '--series-4', dash: dashed, value: ({ denials }) => denials },
    ],
  },
  {
    title: 'Cache',
    format: formatCount,
    integer: true,
    lines: [
      { name: 'hits', colour: '--series-1', fill: true, value: ({ cacheHits }) => cacheHits },
      { name: 'misses', colour: '--series-2', dash: dashed, value: ({ cacheMisses }) => cacheMisses },
    ],
  },
]

/** Drops the last point if its interval is not over yet: the incomplete count would look like a decline. */
export function withoutPartialPoint(series: Series, to: number): Series {
  const last = series.points.at(-1)
  const partial = last !== undefined && last.at + series.stepMs > to && series.points.length > 1
  return partial ? { ...series, points: series.points.slice(0, -1) } : series
}

/** The columns for uPlot: the times in seconds, then the values of each line. */
export function plotData({ points }: Series, { lines, stacked, logarithmic }: Chart): (number | null)[][] {
  const values = lines.map((line) => points.map((point) => valueAt(line, point)))
  if (stacked) {
    for (const [index, line] of values.entries()) {
      const below = values[index - 1]
      if (below) values[index] = line.map((value, at) => (value === null ? null : value + (below[at] ?? 0)))
    }
  }
  // A logarithmic axis has no zero.
  const positive = (value: number | null) => (value === null ? null : Math.max(value, minLogarithmic))
  return [points.map(({ at }) => at / 1000), ...(logarithmic ? values.map((line) => line.map(positive)) : values)]
}

const minLogarithmic = 0.01

/** The bounds of a logarithmic axis: powers of ten, at least one apart. */
export function logarithmicRange(lowest: number | null, highest: number | null): [number, number] {
  if (lowest === null || highest === null) return [1, 1000]
  const first = Math.floor(Math.log10(Math.max(lowest, minLogarithmic)))
  const last = Math.max(first + 1, Math.ceil(Math.log10(highest)))
  return [10 ** first, 10 ** last]
}

/** The label of a tick on the axis of values; null for ticks that uPlot leaves without one. */
export const tickLabel = ({ integer, format }: Chart, value: number | null): string =>
  value === null || (integer && !Number.isInteger(value)) ? '' : format(value)

/** The indexes of values without neighbours. They are drawn as points, because a line needs two values. */
export const isolatedPoints = (values: readonly (number | null | undefined)[]): number[] =>
  values.flatMap((value, index) => {
    const isolated = value != null && values[index - 1] == null && values[index + 1] == null
    return isolated ? [index] : []
  })

/** The text alternative for a chart, for screen readers. */
export function describeChart({ points }: Series, { title, lines, format }: Chart): string {
  const parts = lines.map((line) => {
    const { name } = line
    const values = points.map((point) => valueAt(line, point)).filter((one) => one !== null)
    const last = values.at(-1)
    if (last === undefined) return `${name}: no data`
    return `${name}: ${format(Math.min(...values))} to ${format(Math.max(...values))}, last ${format(last)}`
  })
  return `${title}. ${parts.join('; ')}.`
}
