import { useSignal } from '@preact/signals'
import type { Stats } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { Ago } from '../../parts/moment.tsx'
import { Card } from '../../parts/page.tsx'
import { Segments } from '../../parts/segments.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { query, setQuery } from '../../routing/location.ts'
import { wordIn } from '../../routing/query.ts'
import { type SortBy, sorted, statColumns } from './stat-columns.tsx'

const options: Readonly<Record<Stats['by'], string>> = {
  server: 'Server',
  tool: 'Tool',
  agent: 'Agent',
  operation: 'Operation',
}
const words = ['server', 'tool', 'agent', 'operation'] as const

/** Statistics by server, tool, agent or operation (G9). */
export function Ranking() {
  const by = wordIn(query.value, 'by', words)
  const stats = useResource(read.stats(by), by, { every: 10_000 })
  const sort = useSignal<SortBy>('calls')
  const choice = (
    <Segments
      label="Statistics by"
      options={options}
      value={by}
      onChange={(next) => setQuery({ by: next === 'server' ? '' : next })}
    />
  )
  return (
    <Card title="Statistics" side={choice} flush>
      <Loaded of={stats} what="the statistics">
        {(data) =>
          data.rows.length === 0 ? (
            <Empty title="No calls yet">
              <p class="quiet">Calls are counted here by server, tool, agent and operation.</p>
            </Empty>
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
                  Since <Ago at={data.since} />
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
