import { useSignal } from '@preact/signals'
import type { RefreshedServers, ServerHealth, ServerView, Stats } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { liveOverview, liveServers } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { errorsIn, figuresIn, useStats } from '../../api/stats.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { numberColumn, shareColumn } from '../../components/columns.ts'
import { SearchField, SelectFilter } from '../../components/filters.tsx'
import { ForeignLine } from '../../components/foreign-text.tsx'
import { lazy } from '../../components/lazy.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Page, RefreshButton } from '../../components/page.tsx'
import { describeRange, RangePicker } from '../../components/range-picker.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { breakerStatuses, findingStatus, healthStatuses } from '../../components/statuses.ts'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { ElapsedTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, formatRate, pluralize } from '../../format/number.ts'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'
import { parseRange } from '../../routing/time-range.ts'

const states = Object.keys(healthStatuses) as ServerHealth[]

const AddServer = lazy('the form', async () => (await import('../../config-edit/add-server.tsx')).AddServer)

/** All servers, unhealthy ones first. */
export function Servers() {
  const servers = useResource(queries.servers, 'servers', { pollWhenOffline: true, live: liveServers })
  const adding = useSignal(false)
  // The same number as in the menu: servers that are unhealthy, degraded or need a sign-in.
  const unhealthy = liveOverview.value?.unhealthy
  return (
    <Page
      title="Servers"
      note={`MCP servers behind this gateway.${unhealthy ? ` ${unhealthy} of ${pluralize(servers.data?.length, 'server')} not healthy.` : ''}`}
      actions={
        <>
          <RangePicker range={parseRange(query.value)} />
          {isAdmin.value && servers.data && servers.data.length > 0 && (
            <ActionButton
              name="Refresh all tools"
              confirm={{
                title: 'Refresh the tools of all servers?',
                text: 'Toolway fetches the tools, resources and prompts of every server that is turned on. Servers that are not running are started for it.',
              }}
              run={refreshAll}
            />
          )}
          {isAdmin.value && (
            <Button kind="primary" onClick={() => (adding.value = true)}>
              Add server
            </Button>
          )}
          <RefreshButton onClick={servers.reload} busy={servers.loading} />
        </>
      }
    >
      {adding.value && <AddServer onClose={() => (adding.value = false)} onSaved={servers.reload} />}
      <Loaded resource={servers} what="the servers">
        {(all) =>
          all.length === 0 ? (
            <div class="card">
              <NoServers />
            </div>
          ) : (
            <ServerList all={all} />
          )
        }
      </Loaded>
    </Page>
  )
}

const refreshAll = () => withNotice(actions.refreshServers, refreshedMessage)

function refreshedMessage({ servers, failed, running }: RefreshedServers): string {
  const done = servers - running - failed.length
  return [
    `Refreshed ${done} of ${pluralize(servers, 'server')}.`,
    ...(running > 0 ? [`Still waiting for ${running}.`] : []),
    ...(failed.length > 0 ? [`Failed: ${failed.slice(0, 5).join(', ')}${failed.length > 5 ? ', …' : ''}.`] : []),
  ].join(' ')
}

function ServerList({ all }: { readonly all: readonly ServerView[] }) {
  const text = (query.value.get('q') ?? '').toLowerCase()
  const health = query.value.get('health') ?? ''
  const stats = useStats('server')
  const rows = all
    .filter((server) => health === '' || server.health === health)
    .filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(text))
    .toSorted((a, b) => urgency(a) - urgency(b) || a.name.localeCompare(b.name, 'en', { numeric: true }))
  return (
    <>
      <div class="filters">
        <SearchField label="Search servers" />
        <SelectFilter label="Health" name="health" options={states} all="any" />
      </div>
      <div class="card">
        {rows.length === 0 ? (
          <EmptyState title="No matching servers">
            <p class="quiet">
              There {all.length === 1 ? 'is' : 'are'} {pluralize(all.length, 'server')}, but none matches the filters.
            </p>
          </EmptyState>
        ) : (
          <>
            <Table label="Servers" rows={rows} keyOf={({ name }) => name} columns={serverColumns(stats.data)} />
            <p class="table-foot">Calls, latencies and errors {describeRange(stats.range)}</p>
          </>
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
    <EmptyState title="No servers yet">
      <p>
        Toolway's native tools already work. Add servers {isAdmin.value && 'here or '}in the configuration: it is
        reloaded when it changes, and clients stay connected.
      </p>
      <p>Import the servers that your editors use:</p>
      <CodeBlock text="toolway init" label="Command to import servers from your editors" />
      <p>
        Or add them to <code>toolway.yaml</code>:
      </p>
      <CodeBlock text={example} label="Example: servers in toolway.yaml" />
      {isAdmin.value && <a href={pathTo('config')}>See which files are read</a>}
    </EmptyState>
  )
}

const serverColumns = (stats: Stats | undefined): readonly Column<ServerView>[] => [
  {
    title: 'Server',
    sortBy: ({ name }) => name,
    truncate: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={pathTo('servers', name)}>
          <BreakableName name={name} />
        </RowLink>
        <ForeignLine text={description} />
      </>
    ),
  },
  {
    title: 'Health',
    sortBy: urgency,
    cell: ({ health, reason, since, paused, findings }) => (
      <>
        <StatusBadge status={healthStatuses[health]} title={reason}>
          {paused ? 'turned off' : health}
        </StatusBadge>
        <span class="sub">
          <ElapsedTime since={since} />
        </span>
        {findings.length > 0 && (
          <span class="sub">
            <StatusBadge status={findingStatus} title={findings.map(({ message }) => message).join('\n')}>
              {pluralize(findings.length, 'finding')}
            </StatusBadge>
          </span>
        )}
      </>
    ),
  },
  {
    title: 'Transport',
    sortBy: ({ transport, protocolVersion }) => `${transport} ${protocolVersion}`,
    minScreen: 'middle',
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
    sortBy: ({ breaker }) => breaker,
    minScreen: 'wide',
    cell: ({ breaker }) => <StatusBadge status={breakerStatuses[breaker]} />,
  },
  numberColumn('Tools', ({ tools }) => tools),
  ...statsColumns(stats),
  {
    title: 'Restarts',
    sortBy: ({ process }) => process?.restarts,
    alignEnd: true,
    minScreen: 'wide',
    cell: ({ process }) => (process ? formatCount(process.restarts) : ''),
  },
]

/** How a server did over the time range in the address. */
const statsColumns = (stats: Stats | undefined): readonly Column<ServerView>[] => [
  numberColumn('Calls/s', ({ name }) => figuresIn(stats, name).perSecond, { format: formatRate, minScreen: 'middle' }),
  numberColumn('p95', ({ name }) => figuresIn(stats, name).p95Ms, { format: formatDuration }),
  shareColumn('Errors', ({ name }) => errorsIn(stats, name), { minScreen: 'middle' }),
]
