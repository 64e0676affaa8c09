import type { Matrix } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { usePages } from '../../api/paged.ts'
import { useReloadOnToolChange, useResource } from '../../api/resource.ts'
import { Choose, Search } from '../../parts/filters.tsx'
import { More } from '../../parts/more.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { query } from '../../routing/location.ts'
import './matrix.css'
import { allowedLook, deniedLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Name } from '../../parts/name.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

export function MatrixView() {
  const filter = { query: query.value.get('q') ?? '', server: query.value.get('server') ?? '' }
  const matrix = usePages<Matrix>((cursor) => queries.matrix({ ...filter, cursor, limit: 50 }), JSON.stringify(filter))
  useReloadOnToolChange(matrix.first)
  const servers = useResource(queries.servers, 'servers')
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

interface MatrixProps {
  readonly agents: readonly string[]
  readonly rows: Matrix['rows']
}

/** One row per tool, one column per agent; each cell links to its explanation. */
function MatrixTable({ agents, rows }: MatrixProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <section class="table matrix" aria-label="Permissions" tabIndex={0}>
      <table>
        <caption class="hidden">Which agent may use which tool</caption>
        <thead>
          <tr>
            <th scope="col">Tool</th>
            {agents.map((agent) => (
              <th key={agent} scope="col">
                <Name of={agent} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ server, tool, allowed }) => (
            <tr key={`${server}.${tool}`}>
              <th scope="row">
                <span class="quiet">
                  <Name of={`${server}.`} />
                </span>
                <wbr />
                <Name of={tool} />
              </th>
              {agents.map((agent, index) => (
                <td key={agent}>
                  <a
                    href={withQuery(pathTo('policy'), { view: 'why', agent, tool: `${server}.${tool}` })}
                    title={`${agent}, ${server}.${tool}: why?`}
                  >
                    <Mark look={allowed[index] ? allowedLook : deniedLook} />
                  </a>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
