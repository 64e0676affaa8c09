import type { ServerHealth, ServerView } from '../../../../src/serve/admin/contract.ts'
import { read } from '../../api/endpoints.ts'
import { liveServers } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { counted } from '../../format/number.ts'
import { Choose, Search } from '../../parts/filters.tsx'
import { healthLooks } from '../../parts/looks.ts'
import { Page, Refresh } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { NoServers } from './no-servers.tsx'
import { serverColumns } from './server-columns.tsx'

const states = Object.keys(healthLooks) as ServerHealth[]

/** All servers, unhealthy ones first. */
export function Servers() {
  const asked = useResource(read.servers, 'servers', { withoutStream: true })
  const servers = { ...asked, data: liveServers.value ?? asked.data }
  return (
    <Page
      title="Servers"
      note="MCP servers behind this gateway."
      actions={<Refresh onClick={asked.reload} busy={asked.loading} />}
    >
      <Loaded of={servers} what="the servers">
        {(all) =>
          all.length === 0 ? (
            <div class="card">
              <NoServers />
            </div>
          ) : (
            <List all={all} />
          )
        }
      </Loaded>
    </Page>
  )
}

function List({ all }: { readonly all: readonly ServerView[] }) {
  const text = (query.value.get('q') ?? '').toLowerCase()
  const health = query.value.get('health') ?? ''
  const rows = all
    .filter((server) => health === '' || server.health === health)
    .filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(text))
    .toSorted((a, b) => urgency(a) - urgency(b) || a.name.localeCompare(b.name, 'en', { numeric: true }))
  return (
    <>
      <div class="filters">
        <Search label="Search servers" />
        <Choose label="Health" name="health" options={states} all="any" />
      </div>
      <div class="card">
        {rows.length === 0 ? (
          <Empty title="No matching servers">
            <p class="quiet">
              There {all.length === 1 ? 'is' : 'are'} {counted(all.length, 'server')}, but none matches the filters.
            </p>
          </Empty>
        ) : (
          <Table label="Servers" rows={rows} keyOf={({ name }) => name} columns={serverColumns} />
        )}
      </div>
    </>
  )
}

const order: readonly ServerHealth[] = [
  'unhealthy',
  'needs-auth',
  'degraded',
  'starting',
  'stale',
  'healthy',
  'disabled',
]
const urgency = ({ health }: ServerView): number => order.indexOf(health)
