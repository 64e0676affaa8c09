import type { Overview, ServerHealth } from '../../../../src/serve/admin/contract.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Card } from '../../parts/page.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { Bar } from './bar.tsx'

/** Number of servers by state. */
export function HealthCard({ of: { servers } }: { readonly of: Overview }) {
  const states = (Object.keys(healthLooks) as ServerHealth[]).filter((state) => servers[state] > 0)
  const all = states.reduce((sum, state) => sum + servers[state], 0)
  return (
    <Card title="Servers" side={all > 0 && <a href={pathTo('servers')}>All {pluralize(all, 'server')}</a>}>
      {all === 0 ? (
        <p class="quiet">
          None yet. Toolway's native tools work without servers. <a href={pathTo('servers')}>Add a server</a>
        </p>
      ) : (
        <div class="stack tight">
          <Bar parts={states.map((state) => ({ key: state, size: servers[state], tone: healthLooks[state].tone }))} />
          <ul class="row">
            {states.map((state) => (
              <li key={state}>
                <a class="chip" href={withQuery(pathTo('servers'), { health: state })}>
                  <Mark look={healthLooks[state]}>
                    {formatCount(servers[state])} {state}
                  </Mark>
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Card>
  )
}
