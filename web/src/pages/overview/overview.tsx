import { queries } from '../../api/endpoints.ts'
import { gatewayGone, liveApprovals, liveCalls, liveOverview, liveServers, streamState } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { RangeCharts } from '../../charts/range-charts.tsx'
import { Page } from '../../components/page.tsx'
import { RangePicker } from '../../components/range-picker.tsx'
import { Loaded } from '../../components/states.tsx'
import { formatLongDuration } from '../../format/duration.ts'
import { query } from '../../routing/location.ts'
import { parseRange } from '../../routing/time-range.ts'
import { now } from '../../shell/now.ts'
import { FirstApprovals, useHeldApprovals } from '../approvals/approval-list.tsx'
import { Alerts } from './alerts.tsx'
import { BudgetCard } from './budget-card.tsx'
import { Connect } from './connect.tsx'
import { FirstSteps } from './first-steps.tsx'
import { HealthCard } from './health-card.tsx'
import { InboxCard } from './inbox-card.tsx'
import { StatisticsCard } from './statistics-card.tsx'
import { OverviewTiles } from './tiles.tsx'
import { TokenCard } from './token-card.tsx'

export function Overview() {
  const range = parseRange(query.value)
  const overview = useResource(queries.overview, 'overview', { pollWhenOffline: true, live: liveOverview })
  const uptime =
    !gatewayGone.value &&
    overview.data &&
    `Up for ${formatLongDuration(now.value - overview.data.startedAt)}, version ${overview.data.version}.`
  const worker = overview.data?.worker
  const workerNote = worker ? ` The figures of the last minute cover only worker ${worker.number} of ${worker.of}.` : ''
  // The event stream starts with the latest calls, so an empty list means that there were no calls.
  const unused = streamState.value === 'live' && liveCalls.value.length === 0 && overview.data?.calls.calls === 0
  const added = liveServers.value?.filter(({ transport }) => transport !== 'in-process') ?? []
  const starting = liveServers.value !== undefined && (unused || added.length === 0)
  return (
    <Page title="Overview" note={uptime && uptime + workerNote} actions={<RangePicker range={range} />}>
      <Loaded resource={overview} what="the overview">
        {(data) => (
          <>
            <InboxCard />
            <Alerts overview={data} />
            <WaitingApprovals />
            {starting && <FirstSteps overview={data} servers={added} called={!unused} />}
            <OverviewTiles overview={data} />
          </>
        )}
      </Loaded>
      <RangeCharts />
      {overview.data && (
        <div class="grid-2">
          <HealthCard overview={overview.data} />
          <TokenCard account={overview.data.tokens} tools={overview.data.tools} />
        </div>
      )}
      <StatisticsCard />
      {overview.data && overview.data.budgets.length > 0 && <BudgetCard budgets={overview.data.budgets} />}
      {overview.data && !starting && <Connect endpoint={overview.data.endpoint} />}
    </Page>
  )
}

/** Calls that wait for a person, for users who have no inbox. Renders nothing if there are none. */
function WaitingApprovals() {
  const held = useHeldApprovals(liveApprovals.value ?? [])
  if (held.listed.length === 0 || isAdmin.value) return null
  return (
    <section class="stack" aria-label="Approvals">
      <h2>Waiting for approval</h2>
      <FirstApprovals held={held} />
    </section>
  )
}
