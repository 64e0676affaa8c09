import type { Stats } from '../../../../src/admin/contract.ts'
import { useStats } from '../../api/stats.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { numberColumn, shareColumn } from '../../components/columns.ts'
import { Card } from '../../components/page.tsx'
import { describeRange } from '../../components/range-picker.tsx'
import { SegmentedControl } from '../../components/segmented-control.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatClockTime } from '../../format/time.ts'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam, type QueryChanges, withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { rangeBounds, rangeQuery, type TimeRange } from '../../routing/time-range.ts'
import { now } from '../../shell/now.ts'

const groupingNames: Readonly<Record<Stats['by'], string>> = {
  server: 'Server',
  tool: 'Tool',
  agent: 'Agent',
  operation: 'Operation',
  'agent-operation': 'Agent and operation',
}
const groupings = ['server', 'tool', 'agent', 'operation', 'agent-operation'] as const

/** Statistics by server, tool, agent or operation (G9). */
export function StatisticsCard() {
  const by = choiceParam(query.value, 'by', groupings)
  const stats = useStats(by)
  const groupControl = (
    <SegmentedControl
      label="Statistics by"
      options={groupingNames}
      value={by}
      onChange={(next) => setQuery({ by: next === 'server' ? '' : next })}
    />
  )
  return (
    <Card
      title="Statistics"
      side={
        <div class="row">
          <a class="button tiny" href={withQuery(pathTo('overview'), { by: 'tool', sort: '-p95', range: '1h' })}>
            Slowest tools in the last hour
          </a>
          {groupControl}
        </div>
      }
      flush
    >
      <Loaded resource={stats} what="the statistics">
        {(data) =>
          data.rows.length === 0 ? (
            <EmptyState title={`No calls ${describeRange(stats.range)}`}>
              <p class="quiet">Calls are counted here by server, tool, agent and operation.</p>
            </EmptyState>
          ) : (
            <>
              <Table
                label={`Statistics by ${data.by}`}
                rows={data.rows}
                keyOf={({ name }) => name}
                columns={statColumns(data)}
                sort={{ initial: '-calls' }}
                limit={25}
              />
              <p class="table-foot">
                <span>
                  Calls {describeRange(stats.range)}
                  {data.since > askedFrom(stats.range) && ` (kept since ${formatClockTime(data.since, now.peek())})`}
                  {data.rows.length > 25 && `, top 25 of ${data.rows.length}`}. Latencies leave out denials and cache
                  hits. Full list: <code>toolway stats --by {data.by}</code>
                </span>
              </p>
            </>
          )
        }
      </Loaded>
    </Card>
  )
}

type Row = Stats['rows'][number]

/** When the range begins. Statistics come in steps, so one that begins a little later counts as complete. */
const askedFrom = (range: TimeRange): number => rangeBounds(range, Date.now()).from + 60_000

/** A link to what a row counts, in the same range. */
function rowLink({ by, since, to }: Stats, name: string): string {
  const calls = (filter: QueryChanges) => withQuery(pathTo('calls'), { ...filter, ...rangeQuery({ from: since, to }) })
  const { range, from: start, to: end } = Object.fromEntries(query.peek())
  return {
    server: withQuery(pathTo('servers', name), { range, from: start, to: end }),
    tool: calls({ q: name }),
    agent: calls({ agent: name }),
    operation: calls({ q: name }),
    'agent-operation': calls({ agent: name.slice(0, name.lastIndexOf('.')) }),
  }[by]
}

function statColumns(stats: Stats): readonly Column<Row>[] {
  return [
    {
      title: groupingNames[stats.by],
      sortBy: ({ name }) => name,
      cell: ({ name }) => (
        <RowLink href={rowLink(stats, name)}>
          <BreakableName name={name} />
        </RowLink>
      ),
    },
    numberColumn('Calls', ({ calls }) => calls),
    numberColumn('Average', ({ averageMs }) => averageMs, { format: formatDuration, minScreen: 'wide' }),
    numberColumn('p50', ({ p50Ms }) => p50Ms, { format: formatDuration, minScreen: 'middle' }),
    numberColumn('p95', ({ p95Ms }) => p95Ms, { format: formatDuration }),
    numberColumn('p99', ({ p99Ms }) => p99Ms, { format: formatDuration, minScreen: 'middle' }),
    shareColumn('Errors', ({ errors, calls }) => [errors, calls]),
    numberColumn('Denials', ({ denials }) => denials, { minScreen: 'middle' }),
  ]
}
