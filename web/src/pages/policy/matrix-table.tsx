import type { Matrix } from '../../../../src/serve/admin/contract.ts'
import { allowedLook, deniedLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Name } from '../../parts/name.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import './matrix.css'

interface MatrixProps {
  readonly agents: readonly string[]
  readonly rows: Matrix['rows']
}

/** One row per tool, one column per agent; each cell links to its explanation. */
export function MatrixTable({ agents, rows }: MatrixProps) {
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
