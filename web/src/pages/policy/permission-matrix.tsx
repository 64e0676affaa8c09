import type { Matrix } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { usePages } from '../../api/paged.ts'
import { useReloadOnToolChange, useResource } from '../../api/resource.ts'
import { SearchField, SelectFilter } from '../../components/filters.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { EmptyState } from '../../components/states.tsx'
import { query } from '../../routing/location.ts'
import './matrix.css'
import { BreakableName } from '../../components/breakable-name.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { allowedStatus, deniedStatus } from '../../components/statuses.ts'
import type { Column } from '../../components/table.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

export function PermissionMatrix() {
  const filter = { query: query.value.get('q') ?? '', server: query.value.get('server') ?? '' }
  const matrix = usePages<Matrix>((cursor) => queries.matrix({ ...filter, cursor, limit: 50 }), JSON.stringify(filter))
  useReloadOnToolChange(matrix.first)
  const servers = useResource(queries.servers, 'servers')
  const rows = matrix.pages.flatMap((page) => page.rows)
  return (
    <>
      <div class="filters">
        <SearchField label="Search tools" />
        <SelectFilter label="Server" name="server" options={servers.data?.map(({ name }) => name) ?? []} all="all" />
      </div>
      <div class="card">
        <PagedTable
          label="Permissions"
          matrix
          columns={matrixColumns(matrix.pages[0]?.agents ?? [])}
          rows={rows}
          keyOf={({ server, tool }) => `${server}.${tool}`}
          list={matrix}
          what="the permissions"
          itemName="tool"
          empty={() => (
            <EmptyState title="No matching tools">
              <p class="quiet">The search matches the names of servers and tools.</p>
            </EmptyState>
          )}
        />
      </div>
    </>
  )
}

/** One row per tool and one column per agent. Each cell links to the explanation of its decision. */
const matrixColumns = (agents: readonly string[]): readonly Column<MatrixRow>[] => [
  {
    title: 'Tool',
    sortBy: ({ server, tool }) => `${server}.${tool}`,
    cell: ({ server, tool }) => (
      <>
        <span class="quiet">
          <BreakableName name={`${server}.`} />
        </span>
        <wbr />
        <BreakableName name={tool} />
      </>
    ),
  },
  ...agents.map(
    (agent, index): Column<MatrixRow> => ({
      title: agent,
      sortBy: ({ allowed }) => Number(allowed[index]),
      descendingFirst: true,
      cell: ({ server, tool, allowed }) => (
        <a
          href={withQuery(pathTo('policy'), { view: 'why', agent, tool: `${server}.${tool}` })}
          title={`${agent}, ${server}.${tool}: why?`}
        >
          <StatusBadge status={allowed[index] ? allowedStatus : deniedStatus} />
        </a>
      ),
    }),
  ),
]

type MatrixRow = Matrix['rows'][number]
