import type { Series } from '../../../src/serve/admin/contract.ts'
import { took } from '../format/duration.ts'
import { count, rate } from '../format/number.ts'

export type Point = Series['points'][number]

/** One line of a chart. Lines differ in colour and in their dashes. */
export interface Line {
  readonly name: string
  readonly colour: `--series-${1 | 2 | 3 | 4}`
  readonly dash?: readonly number[]
  readonly fill?: boolean
  readonly value: (point: Point) => number | null
}

/** What a chart shows. */
export interface Chart {
  readonly title: string
  readonly lines: readonly Line[]
  readonly write: (value: number) => string
  /** It counts things: its axis has no place for half of one. */
  readonly whole?: true
}

const dashed = [6, 4] as const
const dotted = [2, 3] as const

/** The charts of the overview. */
export const charts: readonly Chart[] = [
  {
    title: 'Calls per second',
    write: rate,
    lines: [{ name: 'calls/s', colour: '--series-1', fill: true, value: ({ perSecond }) => perSecond }],
  },
  {
    title: 'Latency',
    write: took,
    lines: [
      { name: 'p50', colour: '--series-1', value: ({ p50Ms }) => p50Ms },
      { name: 'p95', colour: '--series-2', dash: dashed, value: ({ p95Ms }) => p95Ms },
      { name: 'p99', colour: '--series-3', dash: dotted, value: ({ p99Ms }) => p99Ms },
    ],
  },
  {
    title: 'Errors and denials',
    write: count,
    whole: true,
    lines: [
      { name: 'errors', colour: '--series-3', fill: true, value: ({ errors }) => errors },
      { name: 'denials', colour: '--series-4', dash: dashed, value: ({ denials }) => denials },
    ],
  },
  {
    title: 'Cache',
    write: count,
    whole: true,
    lines: [
      { name: 'hits', colour: '--series-1', fill: true, value: ({ cacheHits }) => cacheHits },
      { name: 'misses', colour: '--series-2', dash: dashed, value: ({ cacheMisses }) => cacheMisses },
    ],
  },
]

/** Without a last point whose time has not passed yet: half of it looks like a fall. */
export function wholePoints(series: Series, to: number): Series {
  const last = series.points.at(-1)
  const partial = last !== undefined && last.at + series.stepMs > to && series.points.length > 1
  return partial ? { ...series, points: series.points.slice(0, -1) } : series
}

/** The columns that the plot draws: times in seconds, then the values of each line. */
export const columnsOf = ({ points }: Series, { lines }: Chart): (number | null)[][] => [
  points.map(({ at }) => at / 1000),
  ...lines.map(({ value }) => points.map(value)),
]

/** What stands at a place of the axis. */
export const tickText = ({ whole, write }: Chart, value: number): string =>
  whole && !Number.isInteger(value) ? '' : write(value)

/** Where a value has no neighbours: no line leads there, so that it must be drawn as a point. */
export const lonely = (values: readonly (number | null | undefined)[]): number[] =>
  values.flatMap((value, index) => {
    const alone = value != null && values[index - 1] == null && values[index + 1] == null
    return alone ? [index] : []
  })

/** A chart in a sentence, for those who do not see it. */
export function sentenceOf({ points }: Series, { title, lines, write }: Chart): string {
  const parts = lines.map(({ name, value }) => {
    const values = points.map(value).filter((one) => one !== null)
    const last = values.at(-1)
    if (last === undefined) return `${name}: no data`
    return `${name}: ${write(Math.min(...values))} to ${write(Math.max(...values))}, last ${write(last)}`
  })
  return `${title}. ${parts.join('; ')}.`
}
