import type { ToolDetail, ToolPermission } from '../../../../src/serve/admin/contract.ts'
import { allowedLook, deniedLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

export function Permissions({ tool }: { readonly tool: ToolDetail }) {
  if (tool.agents.length === 0) {
    return (
      <div class="card">
        <Empty title="No agents are configured">
          <p>
            There is a single user, who may use everything. As soon as one agent is configured, everything that is not
            allowed is denied.
          </p>
          <a href={pathTo('policy')}>How to write rules</a>
        </Empty>
      </div>
    )
  }
  const asked = `${tool.server}.${tool.tool}`
  return (
    <div class="card">
      <Table<ToolPermission>
        label={`Who may use ${tool.name}`}
        rows={tool.agents}
        keyOf={({ agent }) => agent}
        columns={[
          { title: 'Agent', cell: ({ agent }) => <strong>{agent}</strong> },
          { title: 'Permission', cell: ({ allowed }) => <Mark look={allowed ? allowedLook : deniedLook} /> },
          { title: 'Rule', cell: ({ rule }) => <code>{rule}</code> },
          {
            title: 'Explanation',
            end: true,
            cell: ({ agent }) => (
              <a href={withQuery(pathTo('policy'), { view: 'why', agent, tool: asked })}>
                Why<span class="hidden"> for {agent}</span>
              </a>
            ),
          },
        ]}
      />
    </div>
  )
}
