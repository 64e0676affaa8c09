import type { ConfigEdit, PolicyPreview } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Card } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { allowedStatus, deniedStatus } from '../../components/statuses.ts'
import { type Column, Table } from '../../components/table.tsx'
import { formatCount, pluralize } from '../../format/number.ts'
import './matrix.css'

/** The permissions that an edit would change: one row per tool and one column per agent. */
export function PolicyEffect({ edit }: { readonly edit: ConfigEdit }) {
  const preview = useResource(queries.policyPreview(edit), JSON.stringify(edit))
  return (
    <Card title="Permissions">
      <Loaded resource={preview} what="the permissions">
        {(data) => (
          <div class="stack">
            <p>
              {data.changed === 0
                ? 'No permissions change. Limits and guards are not compared.'
                : `${formatCount(data.changed)} of ${pluralize(data.total, 'permission')} would change.`}
            </p>
            {data.rows.length > 0 && <ChangedCells preview={data} />}
            {data.omitted > 0 && <p class="quiet">{pluralize(data.omitted, 'more tool')} not shown.</p>}
          </div>
        )}
      </Loaded>
    </Card>
  )
}

type ChangedRow = PolicyPreview['rows'][number]

const toolOf = ({ server, tool }: ChangedRow): string => `${server}.${tool}`

function ChangedCells({ preview: { agents, rows } }: { readonly preview: PolicyPreview }) {
  const columns: readonly Column<ChangedRow>[] = [
    { title: 'Tool', sortBy: toolOf, cell: (row) => <BreakableName name={toolOf(row)} /> },
    ...agents.map(
      (agent, index): Column<ChangedRow> => ({
        title: agent,
        sortBy: ({ before, after }) => (before[index] === after[index] ? undefined : String(after[index])),
        cell: ({ before, after }) => <Cell before={before[index] ?? null} after={after[index] ?? null} />,
      }),
    ),
  ]
  return (
    <Table label="Changed permissions" matrix columns={columns} rows={rows} keyOf={toolOf} sort={{ param: 'effect' }} />
  )
}

function Cell({ before, after }: { readonly before: boolean | null; readonly after: boolean | null }) {
  if (before === after) return <span class="quiet">unchanged</span>
  return (
    <span class="stack tight">
      {after === null ? (
        <span class="quiet">no such agent</span>
      ) : (
        <StatusBadge status={after ? allowedStatus : deniedStatus} />
      )}
      <span class="sub">{before === null ? 'new agent' : `was ${before ? 'allowed' : 'denied'}`}</span>
    </span>
  )
}
