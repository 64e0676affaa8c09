import type { CallView, ServerDetail, ToolView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveCalls } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { AccessBadge } from '../../components/access-badge.tsx'
import { BreakableName } from '../../components/breakable-name.tsx'
import { numberColumn } from '../../components/columns.ts'
import { ForeignLine } from '../../components/foreign-text.tsx'
import { Card } from '../../components/page.tsx'
import { describeRange } from '../../components/range-picker.tsx'
import { Loaded } from '../../components/states.tsx'
import { type Status, StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { ClockTime, RelativeTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { query } from '../../routing/location.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { parseRange, rangeBounds, rangeQuery } from '../../routing/time-range.ts'

const maxCalls = 10
const maxTools = 10

/** Whether a server was ever connected, so that it is known what it offers. */
export const isListed = ({ era, transport }: ServerDetail): boolean => era !== null || transport === 'in-process'

/** The tools that take most of the context. */
export function ServerTools({ server }: { readonly server: ServerDetail }) {
  const { name, tools, toolTokens } = server
  const page = useResource(queries.tools({ server: name, sort: '-tokens', limit: maxTools }), `${name} ${tools}`)
  const all = <a href={withQuery(pathTo('tools'), { server: name })}>View tools</a>
  return (
    <Card title="Tools" side={all} flush>
      <Loaded resource={page} what="the tools">
        {({ tools: rows, total }) => (
          <>
            {rows.length > 0 && (
              <Table
                label="Tools"
                rows={rows}
                keyOf={({ name }) => name}
                columns={toolColumns}
                sort={{ param: 'tools', initial: '-tokens' }}
              />
            )}
            <p class="table-foot">
              {total === 0
                ? isListed(server)
                  ? 'It offers no tools.'
                  : 'Its tools are not known yet.'
                : `${pluralize(total, 'tool')}, ${formatCount(toolTokens)} tokens of context.`}
              {total > rows.length && ` The ${rows.length} largest are shown.`}
            </p>
          </>
        )}
      </Loaded>
    </Card>
  )
}

const toolColumns: readonly Column<ToolView>[] = [
  {
    title: 'Tool',
    sortBy: ({ tool }) => tool,
    cell: ({ name, tool }) => (
      <RowLink href={pathTo('tools', name)}>
        <BreakableName name={tool} />
      </RowLink>
    ),
  },
  { title: 'Access', sortBy: ({ access }) => access, cell: ({ access }) => <AccessBadge access={access} /> },
  numberColumn('Tokens', ({ tokens }) => tokens),
]

/** The latest calls of the time range in the address. They arrive live, unless the range has ended. */
export function RecentCalls({ name }: { readonly name: string }) {
  const range = parseRange(query.value)
  const within = 'from' in range ? range : { from: rangeBounds(range, Date.now()).from, to: undefined }
  const loaded = useResource(
    queries.calls({ server: name, limit: maxCalls, from: within.from, to: within.to }),
    `${name} ${JSON.stringify(range)}`,
  )
  const live = liveCalls.value.filter(
    ({ server, at }) => server === name && at >= within.from && at < (within.to ?? Number.POSITIVE_INFINITY),
  )
  const known = new Map([...(loaded.data?.calls ?? []), ...live].map((call) => [call.id, call]))
  const rows = [...known.values()].sort((a, b) => b.at - a.at).slice(0, maxCalls)
  return (
    <Card
      title="Recent calls"
      side={
        <a href={withQuery(pathTo('calls'), { server: name, ...('from' in range && rangeQuery(range)) })}>View calls</a>
      }
      flush={rows.length > 0}
    >
      <Loaded resource={loaded} what="the calls">
        {() =>
          rows.length === 0 ? (
            <p class="quiet">No calls {describeRange(range)}.</p>
          ) : (
            <Table
              label="Recent calls"
              rows={rows}
              keyOf={({ id }) => id}
              columns={callColumns}
              sort={{ param: 'calls', initial: '-time' }}
            />
          )
        }
      </Loaded>
    </Card>
  )
}

const callColumns: readonly Column<CallView>[] = [
  { title: 'Time', sortBy: ({ at }) => at, descendingFirst: true, cell: ({ at }) => <ClockTime at={at} /> },
  {
    title: 'Target',
    sortBy: ({ name }) => name,
    cell: ({ id, name, operation }) => (
      <RowLink href={pathTo('calls', id)}>
        <BreakableName name={name || operation} />
      </RowLink>
    ),
  },
  {
    title: 'Outcome',
    sortBy: ({ outcome }) => outcome,
    cell: ({ outcome, code }) => <StatusBadge status={outcomeStatuses[outcome]} title={code ?? undefined} />,
  },
  numberColumn('Duration', ({ ms }) => ms, { format: formatDuration }),
]

type ServerEvent = ServerDetail['events'][number]

const eventStatuses: Readonly<Record<ServerEvent['kind'], Status>> = {
  started: { tone: 'ok', shape: 'dot', label: 'started' },
  lost: { tone: 'bad', shape: 'cross', label: 'ended' },
  failed: { tone: 'bad', shape: 'triangle', label: 'could not start' },
  idle: { tone: 'quiet', shape: 'ring', label: 'closed (idle)' },
  restarted: { tone: 'info', shape: 'half', label: 'restart by an operator' },
  paused: { tone: 'quiet', shape: 'dash', label: 'turned off' },
  resumed: { tone: 'info', shape: 'dot', label: 'turned on' },
}

/** Starts, exits, failures and operator actions, newest first. */
export function ServerEvents({ events }: Pick<ServerDetail, 'events'>) {
  if (!isAdmin.value) return null
  return (
    <Card title="Starts and exits" flush={events.length > 0}>
      {events.length === 0 ? (
        <p class="quiet">Nothing has happened since this process loaded the server's configuration.</p>
      ) : (
        <Table
          label="Starts and exits"
          rows={events}
          keyOf={(event) => `${event.at} ${event.kind} ${event.pid}`}
          columns={eventColumns}
          sort={{ param: 'events', initial: '-time' }}
        />
      )}
    </Card>
  )
}

const eventColumns: readonly Column<ServerEvent>[] = [
  { title: 'Time', sortBy: ({ at }) => at, descendingFirst: true, cell: ({ at }) => <ClockTime at={at} /> },
  {
    title: 'Event',
    sortBy: ({ kind }) => eventStatuses[kind].label,
    cell: ({ kind, times, reason }) => (
      <>
        <StatusBadge status={eventStatuses[kind]}>
          {eventStatuses[kind].label}
          {times > 1 && ` (${formatCount(times)} times)`}
        </StatusBadge>
        {reason !== null && <p class="quiet">{reason}</p>}
      </>
    ),
  },
  { title: 'Process', alignEnd: true, sortBy: ({ pid }) => pid, cell: ({ pid }) => pid ?? '' },
]

type Connection = NonNullable<ServerDetail['connections']>['open'][number]

const scopes: Readonly<Record<Connection['scope'], string>> = {
  shared: 'all callers',
  session: 'one session',
  call: 'one call',
  spare: 'kept ready',
}

/** The open connections and the sessions that use them. */
export function Connections({ connections }: Pick<ServerDetail, 'connections'>) {
  if (connections === null) return null
  const { total, open } = connections
  return (
    <Card title="Connections" flush={open.length > 0}>
      {open.length === 0 ? (
        <p class="quiet">No open connections; the next call opens one.</p>
      ) : (
        <>
          <Table
            label="Connections"
            rows={open}
            keyOf={(one) => `${one.pid} ${one.openedAt} ${one.principal} ${open.indexOf(one)}`}
            columns={connectionColumns}
            sort={{ param: 'connections' }}
          />
          {total > open.length && (
            <p class="table-foot">
              {formatCount(open.length)} of {formatCount(total)}
            </p>
          )}
        </>
      )}
    </Card>
  )
}

const connectionColumns: readonly Column<Connection>[] = [
  {
    title: 'For',
    sortBy: ({ scope, principal }) => `${scope} ${principal}`,
    cell: ({ scope, principal }) => (
      <>
        {scopes[scope]}
        {principal !== null && <span class="sub">{principal}</span>}
      </>
    ),
  },
  {
    title: 'Opened',
    sortBy: ({ openedAt }) => openedAt,
    descendingFirst: true,
    cell: ({ openedAt }) => <RelativeTime at={openedAt} />,
  },
  numberColumn('Sessions', ({ sessions }) => sessions),
  { title: 'In use', sortBy: ({ inUse }) => String(inUse), cell: ({ inUse }) => (inUse ? 'yes' : 'no') },
  { title: 'Process', alignEnd: true, sortBy: ({ pid }) => pid, cell: ({ pid }) => pid ?? '' },
]

type Offer = ServerDetail['offers'][number]

/** Its resources, resource templates and prompts. Renders nothing if there are none. */
export function Offers({ offers }: Pick<ServerDetail, 'offers'>) {
  if (offers.length === 0) return null
  return (
    <Card title="Resources and prompts" flush>
      <Table
        label="Resources and prompts"
        rows={offers}
        keyOf={({ kind, name, uri }) => `${kind} ${name} ${uri}`}
        columns={offerColumns}
        sort={{ param: 'offers' }}
        limit={100}
      />
      {offers.length > 100 && <p class="table-foot">The first 100 of {formatCount(offers.length)} are shown.</p>}
    </Card>
  )
}

const offerColumns: readonly Column<Offer>[] = [
  {
    title: 'Name',
    truncate: true,
    sortBy: ({ name }) => name,
    cell: ({ name, uri, description }) => (
      <>
        <BreakableName name={name} />
        {uri !== null && <span class="sub mono">{uri}</span>}
        <ForeignLine text={description} />
      </>
    ),
  },
  { title: 'Kind', sortBy: ({ kind }) => kind, cell: ({ kind }) => (kind === 'template' ? 'resource template' : kind) },
]
