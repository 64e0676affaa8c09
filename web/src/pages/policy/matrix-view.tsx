import type { Matrix } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { useFollowTools } from '../../api/follow-tools.ts'
import { usePages } from '../../api/paged.ts'
import { useResource } from '../../api/resource.ts'
import { Choose, Search } from '../../parts/filters.tsx'
import { More } from '../../parts/more.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { query } from '../../routing/location.ts'
import { MatrixTable } from './matrix-table.tsx'

export function MatrixView() {
  const filter = { query: query.value.get('q') ?? '', server: query.value.get('server') ?? '' }
  const matrix = usePages<Matrix>((cursor) => read.matrix({ ...filter, cursor, limit: 50 }), JSON.stringify(filter))
  useFollowTools(matrix.first)
  const servers = useResource(read.servers, 'servers')
  const rows = matrix.pages.flatMap((page) => page.rows)
  return (
    <>
      <div class="filters">
        <Search label="Search tools" />
        <Choose label="Server" name="server" options={servers.data?.map(({ name }) => name) ?? []} all="all" />
      </div>
      <div class="card">
        <Loaded of={matrix.first} what="the permissions">
          {({ agents, total }) =>
            rows.length === 0 ? (
              <Empty title="No matching tools">
                <p class="quiet">The search matches the names of servers and tools.</p>
              </Empty>
            ) : (
              <>
                <MatrixTable agents={agents} rows={rows} />
                <More of={matrix} shown={rows.length} total={total} things="tools" />
              </>
            )
          }
        </Loaded>
      </div>
    </>
  )
}
