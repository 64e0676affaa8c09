import type { Figures, Stats } from '../../../../src/serve/admin/contract.ts'
import { useStats } from '../../api/stats.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Icon } from '../../components/icon.tsx'
import { Card } from '../../components/page.tsx'
import { describeRange } from '../../components/range-picker.tsx'
import { SegmentedControl } from '../../components/segmented-control.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatShare } from '../../format/number.ts'
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
}
const groupings = ['server', 'tool', 'agent', 'operation'] as const

/** Statistics by server, tool, agent or operation (G9). */
export function StatisticsCard() {
  const by = choiceParam(query.value, 'by', groupings)
  const stats = useStats(by)
  const sort = choiceParam(query.value, 'sort', sorts)
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
          <a class="button tiny" href={withQuery(pathTo('overview'), { by: 'tool', sort: 'p95Ms', range: '1h' })}>
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
                rows={sorted(data.rows, sort).slice(0, 25)}
                keyOf={({ name }) => name}
                columns={statColumns(data, sort)}
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

const sortKeys = {
  calls: ({ calls }: Figures) => calls,
  averageMs: ({ averageMs }: Figures) => averageMs ?? -1,
  p50Ms: ({ p50Ms }: Figures) => p50Ms ?? -1,
  p95Ms: ({ p95Ms }: Figures) => p95Ms ?? -1,
  p99Ms: ({ p99Ms }: Figures) => p99Ms ?? -1,
  errors: ({ calls, errors }: Figures) => (calls > 0 ? errors / calls : 0),
  denials: ({ denials }: Figures) => denials,
} as const

type SortBy = keyof typeof sortKeys
const sorts = Object.keys(sortKeys) as SortBy[]

/** When the range begins. Statistics come in steps, so one that begins a little later counts as complete. */
const askedFrom = (range: TimeRange): number => rangeBounds(range, Date.now()).from + 60_000

/** Sorts rows in descending order. */
const sorted = (rows: readonly Row[], by: SortBy): readonly Row[] =>
  rows.toSorted((a, b) => sortKeys[by](b) - sortKeys[by](a))

/** A link to what a row counts, in the same range. */
function rowLink({ by, since, to }: Stats, name: string): string {
  const calls = (filter: QueryChanges) => withQuery(pathTo('calls'), { ...filter, ...rangeQuery({ from: since, to }) })
  const { range, from: start, to: end } = Object.fromEntries(query.peek())
  return {
    server: withQuery(pathTo('servers', name), { range, from: start, to: end }),
    tool: calls({ q: name }),
    agent: calls({ agent: name }),
    operation: calls({ q: name }),
  }[by]
}

function statColumns(stats: Stats, sort: SortBy): readonly Column<Row>[] {
  const sortableColumn = (
    title: string,
    key: SortBy,
    cell: (row: Row) => string,
    minScreen?: 'middle' | 'wide',
  ): Column<Row> => ({
    title,
    alignEnd: true,
    ...(minScreen && { minScreen }),
    sorted: sort === key ? 'descending' : undefined,
    header: (
      <button type="button" class="sort" onClick={() => setQuery({ sort: key === 'calls' ? '' : key })}>
        {title} {sort === key && <Icon name="down" size={11} />}
      </button>
    ),
    cell,
  })
  return [
    {
      title: titles[stats.by],
      cell: ({ name }) => (
        <RowLink href={rowLink(stats, name)}>
          <BreakableName name={name} />
        </RowLink>
      ),
    },
    sortableColumn('Calls', 'calls', ({ calls }) => formatCount(calls)),
    sortableColumn('Average', 'averageMs', ({ averageMs }) => formatDuration(averageMs), 'wide'),
    sortableColumn('p50', 'p50Ms', ({ p50Ms }) => formatDuration(p50Ms), 'middle'),
    sortableColumn('p95', 'p95Ms', ({ p95Ms }) => formatDuration(p95Ms)),
    sortableColumn('p99', 'p99Ms', ({ p99Ms }) => formatDuration(p99Ms), 'middle'),
    sortableColumn('Errors', 'errors', ({ errors, calls }) => formatShare(errors, calls)),
    sortableColumn('Denials', 'denials', ({ denials }) => formatCount(denials), 'middle'),
  ]
}

const titles = { server: 'Server', tool: 'Tool', agent: 'Agent', operation: 'Operation' } as const
