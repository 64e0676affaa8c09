import { useSignal } from '@preact/signals'
import type { Series } from '../../../src/admin/contract.ts'
import { Button } from '../components/button.tsx'
import { noValue } from '../format/number.ts'
import { formatClockTime } from '../format/time.ts'
import { setQuery } from '../routing/location.ts'
import { rangeQuery } from '../routing/time-range.ts'
import { now } from '../shell/now.ts'
import { type Chart, type Line, type Point, valueAt } from './chart.ts'
import './chart.css'
import { lazy } from '../components/lazy.tsx'
import { Table } from '../components/table.tsx'
import { ClockTime } from '../components/times.tsx'

const Plot = lazy('the chart', loadPlot)

/**
 * Loads uPlot, which formats numbers in the browser's language. It fails at once if that is not a language tag: some
 * browsers have `en-US@posix` where no locale is set.
 */
async function loadPlot() {
  try {
    Intl.getCanonicalLocales(navigator.language)
  } catch {
    Object.defineProperty(navigator, 'language', { value: 'en', configurable: true })
  }
  return (await import('./plot.tsx')).Plot
}

interface ChartCardProps {
  readonly chart: Chart
  readonly series: Series
}

/** A chart whose legend shows the values under the pointer. It can be switched to a table. */
export function ChartCard({ chart, series }: ChartCardProps) {
  const hovered = useSignal<number | null>(null)
  const asTable = useSignal(false)
  const point = series.points[hovered.value ?? -1] ?? series.points.at(-1)
  const events = {
    onHover: (index: number | null) => {
      hovered.value = index
    },
    onSelect: (from: number, to: number) => setQuery(rangeQuery({ from: Math.round(from), to: Math.round(to) })),
  }
  return (
    <figure class="card chart">
      <figcaption class="card-head">
        <h2>{chart.title}</h2>
        <span class="quiet small">{point ? formatClockTime(point.at, now.peek()) : noValue}</span>
      </figcaption>
      <div class="chart-body">
        <ul class="legend">
          {chart.lines.map((line) => (
            <LegendEntry key={line.name} line={line} chart={chart} point={point} />
          ))}
          <li>
            <Button kind="tiny plain" aria-pressed={asTable.value} onClick={() => (asTable.value = !asTable.value)}>
              Table
              <span class="hidden"> of {chart.title}</span>
            </Button>
          </li>
        </ul>
        {asTable.value ? (
          <ChartTable chart={chart} series={series} />
        ) : (
          <div class="plot-space">
            <Plot chart={chart} series={series} events={events} />
          </div>
        )}
      </div>
    </figure>
  )
}

interface LegendEntryProps {
  readonly line: Line
  readonly chart: Chart
  readonly point: Point | undefined
}

function LegendEntry({ line, chart, point }: LegendEntryProps) {
  const value = point ? valueAt(line, point) : null
  return (
    <li>
      <svg viewBox="0 0 18 4" width="18" height="4" aria-hidden="true">
        <path d="M0 2h18" stroke={`var(${line.colour})`} stroke-width="2.5" stroke-dasharray={line.dash?.join(' ')} />
      </svg>
      <span class="quiet">{line.name}</span> <strong>{value === null ? noValue : chart.format(value)}</strong>
    </li>
  )
}

function ChartTable({ chart, series }: { readonly chart: Chart; readonly series: Series }) {
  return (
    <div class="chart-table">
      <Table<Point>
        label={`${chart.title}, newest first`}
        rows={series.points.toReversed()}
        keyOf={({ at }) => String(at)}
        sort={{ param: 'points', initial: '-time' }}
        columns={[
          { title: 'Time', sortBy: ({ at }) => at, descendingFirst: true, cell: ({ at }) => <ClockTime at={at} /> },
          ...chart.lines.map((line) => ({
            title: line.name,
            alignEnd: true,
            sortBy: (point: Point) => valueAt(line, point),
            cell: (point: Point) => {
              const number = valueAt(line, point)
              return number === null ? noValue : chart.format(number)
            },
          })),
        ]}
      />
    </div>
  )
}
