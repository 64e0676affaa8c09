import type { Stats } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
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
                rows={data.rows}
                keyOf={({ name }) => name}
                columns={statColumns(data.by)}
                sort={{ initial: '-calls' }}
                limit={25}
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

const rowLink = (by: Stats['by'], name: string): string =>
  ({
    server: pathTo('servers', name),
    tool: withQuery(pathTo('calls'), { q: name }),
    agent: withQuery(pathTo('calls'), { agent: name }),
    operation: withQuery(pathTo('calls'), { q: name }),
  })[by]

function statColumns(by: Stats['by']): readonly Column<Row>[] {
  return [
    {
      title: groupingNames[by],
      sortBy: ({ name }) => name,
      cell: ({ name }) => (
        <RowLink href={rowLink(by, name)}>
          <BreakableName name={name} />
        </RowLink>
      ),
    },
    { title: 'Calls', alignEnd: true, sortBy: ({ calls }) => calls, cell: ({ calls }) => formatCount(calls) },
    duration('Average', 'averageMs', 'wide'),
    duration('p50', 'p50Ms', 'middle'),
    duration('p95', 'p95Ms'),
    duration('p99', 'p99Ms', 'middle'),
    {
      title: 'Errors',
      alignEnd: true,
      sortBy: ({ errors, calls }) => (calls > 0 ? errors / calls : 0),
      cell: ({ errors, calls }) => formatShare(errors, calls),
    },
    {
      title: 'Denials',
      alignEnd: true,
      minScreen: 'middle',
      sortBy: ({ denials }) => denials,
      cell: ({ denials }) => formatCount(denials),
    },
  ]
}

const duration = (
  title: string,
  key: 'averageMs' | 'p50Ms' | 'p95Ms' | 'p99Ms',
  minScreen?: 'middle' | 'wide',
): Column<Row> => ({
  title,
  alignEnd: true,
  ...(minScreen && { minScreen }),
  sortBy: (row) => row[key],
  cell: (row) => formatDuration(row[key]),
})
