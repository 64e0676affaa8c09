import { queries } from '../../api/endpoints.ts'
import { liveCalls, liveOverview, streamState } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { charts, withoutPartialPoint } from '../../charts/chart.ts'
import { ChartCard } from '../../charts/chart-card.tsx'
import { formatLongDuration } from '../../format/duration.ts'
import { formatClockTime } from '../../format/time.ts'
import { Icon } from '../../parts/icon.tsx'
import { Page } from '../../parts/page.tsx'
import { Segments } from '../../parts/segments.tsx'
import { Loaded } from '../../parts/states.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { type Preset, parseRange, rangeBounds, rangeQuery, type TimeRange } from '../../routing/time-range.ts'
import { now } from '../../shell/now.ts'
import { Attention } from './attention.tsx'
import { Connect } from './connect.tsx'
import { FirstSteps } from './first-steps.tsx'
import { HealthCard } from './health-card.tsx'
import { Ranking } from './ranking.tsx'
import { OverviewTiles } from './tiles.tsx'
import { TokenCard } from './token-card.tsx'

export function Overview() {
  const range = parseRange(query.value)
  const asked = useResource(queries.overview, 'overview', { withoutStream: true })
  const short = 'last' in range && (range.last === '5m' || range.last === '15m')
  const series = useResource(
    async (signal) => {
      const { from, to } = rangeBounds(range, Date.now())
      return withoutPartialPoint(await queries.series(from, to)(signal), to)
    },
    JSON.stringify(range),
    'last' in range ? { every: short ? 5000 : 20_000 } : {},
  )
  const overview = { ...asked, data: liveOverview.value ?? asked.data }
  const up =
    overview.data &&
    `Up for ${formatLongDuration(now.value - overview.data.startedAt)}, version ${overview.data.version}.`
  const worker = overview.data?.worker
  const whose = worker ? ` Statistics cover only worker ${worker.number} of ${worker.of}.` : ''
  // The event stream starts with the latest calls, so an empty list means that there were none.
  const unused = streamState.value === 'live' && liveCalls.value.length === 0 && overview.data?.calls.calls === 0
  return (
    <Page title="Overview" note={up && up + whose} actions={<RangeChoice range={range} />}>
      <Loaded of={overview} what="the overview">
        {(data) => (
          <>
            <Attention of={data} />
            {unused && <FirstSteps of={data} />}
            <OverviewTiles of={data} />
          </>
        )}
      </Loaded>
      <Loaded of={series} what="the charts">
        {(data) => (
          <div class="charts">
            {charts.map((chart) => (
              <ChartCard key={chart.title} chart={chart} series={data} />
            ))}
          </div>
        )}
      </Loaded>
      {overview.data && (
        <div class="grid-2">
          <HealthCard of={overview.data} />
          <TokenCard of={overview.data.tokens} tools={overview.data.tools} />
        </div>
      )}
      <Ranking />
      {overview.data && !unused && <Connect endpoint={overview.data.endpoint} />}
    </Page>
  )
}

const options: Readonly<Record<Preset, string>> = {
  '5m': '5 min',
  '15m': '15 min',
  '1h': '1 h',
  '6h': '6 h',
  '24h': '24 h',
}

/** Time range of the charts; dragging across a chart selects any other. */
function RangeChoice({ range }: { readonly range: TimeRange }) {
  return (
    <>
      {'from' in range && (
        <button
          type="button"
          class="button"
          title="Back to the last 15 minutes"
          onClick={() => setQuery(rangeQuery({ last: '15m' }))}
        >
          {formatClockTime(range.from, now.peek())} – {formatClockTime(range.to, now.peek())}{' '}
          <Icon name="close" size={12} />
        </button>
      )}
      <Segments
        label="Time range"
        options={options}
        value={'last' in range ? range.last : undefined}
        onChange={(last) => setQuery(rangeQuery({ last }))}
      />
    </>
  )
}
