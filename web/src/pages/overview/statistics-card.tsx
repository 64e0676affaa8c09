import { type Signal, useSignal } from '@preact/signals'
import type { Figures, Stats } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Icon } from '../../components/icon.tsx'
import { Card } from '../../components/page.tsx'
import { SegmentedControl } from '../../components/segmented-control.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatShare } from '../../format/number.ts'
import { query, setQuery } from '../../routing/location.ts'
import { choiceParam, withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

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
  const stats = useResource(queries.stats(by), by, { pollEveryMs: 10_000 })
  const sort = useSignal<SortBy>('calls')
  const groupControl = (
    <SegmentedControl
      label="Statistics by"
      options={groupingNames}
      value={by}
      onChange={(next) => setQuery({ by: next === 'server' ? '' : next })}
    />
  )
  return (
    <Card title="Statistics" side={groupControl} flush>
      <Loaded resource={stats} what="the statistics">
        {(data) =>
          data.rows.length === 0 ? (
            <EmptyState title="No calls yet">
              <p class="quiet">Calls are counted here by server, tool, agent and operation.</p>
            </EmptyState>
          ) : (
            <>
              <Table
                label={`Statistics by ${data.by}`}
                rows={sorted(data.rows, sort.value).slice(0, 25)}
                keyOf={({ name }) => name}
                columns={statColumns(data.by, sort)}
              />
              <p class="table-foot">
                <span>
                  Since <RelativeTime at={data.since} />
                  {data.rows.length > 25 && `, top 25 of ${data.rows.length}`}. Full list:{' '}
                  <code>toolway stats --by {data.by}</code>
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

/** Sorts rows in descending order. */
const sorted = (rows: readonly Row[], by: SortBy): readonly Row[] =>
  rows.toSorted((a, b) => sortKeys[by](b) - sortKeys[by](a))

const rowLink = (by: Stats['by'], name: string): string =>
  ({
    server: pathTo('servers', name),
    tool: withQuery(pathTo('calls'), { q: name }),
    agent: withQuery(pathTo('calls'), { agent: name }),
    operation: withQuery(pathTo('calls'), { q: name }),
  })[by]

function statColumns(by: Stats['by'], sort: Signal<SortBy>): readonly Column<Row>[] {
  const sortableColumn = (
    title: string,
    key: SortBy,
    cell: (row: Row) => string,
    minScreen?: 'middle' | 'wide',
  ): Column<Row> => ({
    title,
    alignEnd: true,
    ...(minScreen && { minScreen }),
    sorted: sort.value === key ? 'descending' : undefined,
    header: (
      <button type="button" class="sort" onClick={() => (sort.value = key)}>
        {title} {sort.value === key && <Icon name="down" size={11} />}
      </button>
    ),
    cell,
  })
  return [
    {
      title: titles[by],
      cell: ({ name }) => (
        <RowLink href={rowLink(by, name)}>
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
