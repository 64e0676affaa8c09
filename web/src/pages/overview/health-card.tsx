import type { Overview, ServerHealth } from '../../../../src/admin/contract.ts'
import { Card } from '../../components/page.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { healthStatuses } from '../../components/statuses.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { StackedBar } from './stacked-bar.tsx'

/** The number of servers in each state. */
export function HealthCard({ overview: { servers } }: { readonly overview: Overview }) {
  const states = (Object.keys(healthStatuses) as ServerHealth[]).filter((state) => servers[state] > 0)
  const all = states.reduce((sum, state) => sum + servers[state], 0)
  return (
    <Card title="Servers" side={all > 0 && <a href={pathTo('servers')}>All {pluralize(all, 'server')}</a>}>
      {all === 0 ? (
        <p class="quiet">
          None yet. Toolway's native tools work without servers. <a href={pathTo('servers')}>Add a server</a>
        </p>
      ) : (
        <div class="stack tight">
          <StackedBar
            parts={states.map((state) => ({ key: state, size: servers[state], tone: healthStatuses[state].tone }))}
          />
          <ul class="row">
            {states.map((state) => (
              <li key={state}>
                <a class="chip" href={withQuery(pathTo('servers'), { health: state })}>
                  <StatusBadge status={healthStatuses[state]}>
                    {formatCount(servers[state])} {state}
                  </StatusBadge>
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Card>
  )
}
