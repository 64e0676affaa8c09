import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { Loaded } from '../components/states.tsx'
import { query } from '../routing/location.ts'
import { parseRange, rangeBounds } from '../routing/time-range.ts'
import { charts, withoutPartialPoint } from './chart.ts'
import { ChartCard } from './chart-card.tsx'

/** Charts over the time range in the address, of one server or of all. Dragging across one selects its time range. */
export function RangeCharts({ server }: { readonly server?: string }) {
  const range = parseRange(query.value)
  const isShort = 'last' in range && (range.last === '5m' || range.last === '15m')
  const series = useResource(
    async (signal) => {
      const { from, to } = rangeBounds(range, Date.now())
      return withoutPartialPoint(await queries.series(from, to, server)(signal), to)
    },
    JSON.stringify([server, range]),
    'last' in range ? { pollEveryMs: isShort ? 5000 : 20_000 } : {},
  )
  const shown = charts.filter(({ title }) => server === undefined || title !== 'Cache')
  return (
    <Loaded resource={series} what="the charts">
      {(data) => (
        <div class="charts">
          {shown.map((chart) => (
            <ChartCard key={chart.title} chart={chart} series={data} />
          ))}
        </div>
      )}
    </Loaded>
  )
}
