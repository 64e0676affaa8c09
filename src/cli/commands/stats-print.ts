import type { Figures } from '../../telemetry/stats/latencies.ts'
import type { StatsTable } from '../../telemetry/stats/stats.ts'
import type { Output } from '../output.ts'
import { table } from '../table.ts'

type Row = StatsTable['rows'][number]

/** One table for each way to look at it, and since when all of it was counted. */
export function statsLines(tables: readonly StatsTable[], { width, paint }: Pick<Output, 'width' | 'paint'>): string[] {
  const since = tables.map((one) => one.since)[0]
  const heading = since === undefined ? [] : [paint('dim', `Since ${new Date(since).toISOString()}`)]
  return [...heading, ...tables.flatMap((one) => ['', ...tableLines(one, { width, paint })])]
}

function tableLines({ by, rows }: StatsTable, { width, paint }: Pick<Output, 'width' | 'paint'>): string[] {
  if (rows.length === 0) return [`No calls by ${by} yet.`]
  const redIfAny = (some: (row: Row) => number) => (cell: string, row: Row) =>
    some(row) > 0 ? paint('red', cell) : cell
  return table<Row>(
    [
      { title: by.toUpperCase(), value: ({ name }) => name },
      { title: 'CALLS', value: ({ calls }) => String(calls), whole: true },
      { title: 'PER SECOND', value: ({ perSecond }) => digits(perSecond), whole: true },
      { title: 'ERRORS', value: errorText, style: redIfAny(({ errors }) => errors), whole: true },
      {
        title: 'DENIALS',
        value: ({ denials }) => String(denials),
        style: redIfAny(({ denials }) => denials),
        whole: true,
      },
      { title: 'AVERAGE', value: ({ averageMs }) => time(averageMs), whole: true },
      { title: 'P50', value: ({ p50Ms }) => time(p50Ms), whole: true },
      { title: 'P95', value: ({ p95Ms }) => time(p95Ms), whole: true },
      { title: 'P99', value: ({ p99Ms }) => time(p99Ms), whole: true },
    ],
    rows,
    { width, heading: (title) => paint('dim', title) },
  )
}

/** `3 (1.2 %)`. */
const errorText = ({ errors, calls }: Figures): string =>
  errors === 0 ? '0' : `${errors} (${digits((100 * errors) / calls)} %)`

/** Three digits are as many as anybody reads. */
const digits = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** `0.42 ms`, `37 ms`, `1.5 s`; nothing was timed where all were denied. */
function time(ms: number | null): string {
  if (ms === null) return '-'
  return ms < 1000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`
}
