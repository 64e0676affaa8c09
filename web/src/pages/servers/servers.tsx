import type { ServerHealth, ServerView } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveServers } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatRate, formatShare, pluralize } from '../../format/number.ts'
import { Code } from '../../parts/code.tsx'
import { Choose, Search } from '../../parts/filters.tsx'
import { breakerLooks, healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Lasting } from '../../parts/moment.tsx'
import { Name } from '../../parts/name.tsx'
import { Page, Refresh } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { type Column, RowLink, Table } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

const states = Object.keys(healthLooks) as ServerHealth[]

/** All servers, unhealthy ones first. */
export function Servers() {
  const asked = useResource(queries.servers, 'servers', { withoutStream: true })
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
              There {all.length === 1 ? 'is' : 'are'} {pluralize(all.length, 'server')}, but none matches the filters.
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

const example = `mcpServers:
  filesystem:
    description: Files under ./sandbox
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", ./sandbox]
  docs:
    url: https://mcp.example.com/mcp`

function NoServers() {
  return (
    <Empty title="No servers yet">
      <p>
        Toolway's native tools already work. Add servers in the configuration: it is reloaded when you save the file,
        and clients stay connected.
      </p>
      <p>Import the servers that your editors use:</p>
      <Code text="toolway init" label="Command to import servers from your editors" />
      <p>
        Or add them to <code>toolway.yaml</code>:
      </p>
      <Code text={example} label="Example: servers in toolway.yaml" />
      <a href={pathTo('config')}>See which files are read</a>
    </Empty>
  )
}

const serverColumns: readonly Column<ServerView>[] = [
  {
    title: 'Server',
    clip: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={pathTo('servers', name)}>
          <Name of={name} />
        </RowLink>
        {description !== '' && <span class="sub">{description}</span>}
      </>
    ),
  },
  {
    title: 'Health',
    cell: ({ health, reason, since, paused }) => (
      <>
        <Mark look={healthLooks[health]} title={reason}>
          {paused ? 'turned off' : health}
        </Mark>
        <span class="sub">
          <Lasting since={since} />
        </span>
      </>
    ),
  },
  {
    title: 'Transport',
    from: 'middle',
    cell: ({ transport, era, protocolVersion }) => (
      <>
        {transport}
        {transport !== 'in-process' && (
          <span class="sub">{era ? `${era}, ${protocolVersion}` : 'not connected yet'}</span>
        )}
      </>
    ),
  },
  {
    title: 'Breaker',
    from: 'wide',
    cell: ({ breaker }) => <Mark look={breakerLooks[breaker]} />,
  },
  { title: 'Tools', end: true, cell: ({ tools }) => formatCount(tools) },
  { title: 'Calls/s', end: true, from: 'middle', cell: ({ calls }) => formatRate(calls.perSecond) },
  { title: 'p95', end: true, cell: ({ calls }) => formatDuration(calls.p95Ms) },
  { title: 'Errors', end: true, from: 'middle', cell: ({ calls }) => formatShare(calls.errors, calls.calls) },
  {
    title: 'Restarts',
    end: true,
    from: 'wide',
    cell: ({ process }) => (process ? formatCount(process.restarts) : ''),
  },
]
