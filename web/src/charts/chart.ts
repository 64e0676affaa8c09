import type { Series } from '../../../src/serve/admin/contract.ts'
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

export interface Chart {
  readonly title: string
  readonly lines: readonly Line[]
  readonly format: (value: number) => string
  /** Set if the values are counts, so that the axis has no fractional labels. */
  readonly integer?: true
}

const dashed = [6, 4] as const
const dotted = [2, 3] as const

export const charts: readonly Chart[] = [
  {
    title: 'Calls per second',
    format: formatRate,
    lines: [{ name: 'calls/s', colour: '--series-1', fill: true, value: ({ perSecond }) => perSecond }],
  },
  {
    title: 'Latency',
    format: formatDuration,
    lines: [
      { name: 'p50', colour: '--series-1', value: ({ p50Ms }) => p50Ms },
      { name: 'p95', colour: '--series-2', dash: dashed, value: ({ p95Ms }) => p95Ms },
      { name: 'p99', colour: '--series-3', dash: dotted, value: ({ p99Ms }) => p99Ms },
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
export const plotData = ({ points }: Series, { lines }: Chart): (number | null)[][] => [
  points.map(({ at }) => at / 1000),
  ...lines.map(({ value }) => points.map(value)),
]

export const tickLabel = ({ integer, format }: Chart, value: number): string =>
  integer && !Number.isInteger(value) ? '' : format(value)

/** The indexes of values without neighbours. They are drawn as points, because a line needs two values. */
export const isolatedPoints = (values: readonly (number | null | undefined)[]): number[] =>
  values.flatMap((value, index) => {
    const isolated = value != null && values[index - 1] == null && values[index + 1] == null
    return isolated ? [index] : []
  })

/** The text alternative for a chart, for screen readers. */
export function describeChart({ points }: Series, { title, lines, format }: Chart): string {
  const parts = lines.map(({ name, value }) => {
    const values = points.map(value).filter((one) => one !== null)
    const last = values.at(-1)
    if (last === undefined) return `${name}: no data`
    return `${name}: ${format(Math.min(...values))} to ${format(Math.max(...values))}, last ${format(last)}`
  })
  return `${title}. ${parts.join('; ')}.`
}
