import { useSignal } from '@preact/signals'
import type { ServerDetail } from '../../../../src/admin/contract.ts'
import { actions, queries, type ServerAction } from '../../api/endpoints.ts'
import { liveReload, liveServers, updateLiveServer } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { RangeCharts } from '../../charts/range-charts.tsx'
import { ActionButton } from '../../components/action-button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Fact, Facts } from '../../components/facts.tsx'
import { lazy } from '../../components/lazy.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { RangeStats } from '../../components/range-stats.tsx'
import { Loaded, Note } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { breakerStatuses, findingStatus, healthStatuses } from '../../components/statuses.ts'
import { ElapsedTime, RelativeTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { query } from '../../routing/location.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { actionOutcome } from './action-outcome.ts'
import { ServerOutput } from './server-output.tsx'
import { Connections, isListed, Offers, RecentCalls, ServerEvents, ServerTools } from './server-tables.tsx'
import './server.css'

const ServerEditor = lazy('the buttons', async () => (await import('../../config-edit/server-editor.tsx')).ServerEditor)

export function ServerPage({ name }: { readonly name: string }) {
  const follow = useSignal(true)
  const loaded = useResource(queries.server(name), name, { pollEveryMs: follow.value ? 2000 : 5000 })
  const live = liveServers.value?.find((server) => server.name === name)
  const server = { ...loaded, data: loaded.data && { ...loaded.data, ...live } }
  const { data } = server
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name} {data && <StatusBadge status={healthStatuses[data.health]} chip />}
        </span>
      }
      note={data?.description}
      back={{ href: pathTo('servers'), name: 'Servers' }}
      actions={data && <ServerActions server={data} onDone={loaded.reload} />}
    >
      <Loaded resource={server} what={`the server ${name}`}>
        {(data) => (
          <>
            <SignInOutcome name={name} health={data.health} />
            <RangeStats by="server" name={name} />
            {isAdmin.value && data.transport !== 'in-process' && <Definition name={name} />}
            {isAdmin.value && data.transport !== 'in-process' && data.transport !== 'stdio' && (
              <Grants name={name} health={data.health} onDone={loaded.reload} />
            )}
            <Findings findings={data.findings} />
            <div class="grid-2">
              <ServerFacts server={data} />
              <ServerEvents events={data.events} />
            </div>
            <ServerOutput
              lines={data.stderr}
              transport={data.transport}
              follow={follow.value}
              onFollow={(next) => (follow.value = next)}
            />
            <RangeCharts server={name} />
            <div class="grid-2">
              <RecentCalls name={name} />
              <ServerTools server={data} />
            </div>
            <div class="grid-2">
              <Connections connections={data.connections} />
              <Offers offers={data.offers} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** How a sign-in at the authorization server ended, after it has sent the browser back here. */
function SignInOutcome({ name, health }: Pick<ServerDetail, 'name' | 'health'>) {
  const outcome = query.value.get('signIn')
  const missing = health === 'needs-auth'
  if (outcome === 'denied' && missing) {
    return (
      <Note tone="bad">
        <p>Access was denied, so Toolway is not signed in to {name}. To try again, use Sign in.</p>
      </Note>
    )
  }
  if (outcome !== 'done' || missing) return null
  return (
    <Note>
      <p>Toolway is signed in to {name}.</p>
    </Note>
  )
}

/** Where the server comes from, with buttons to change it in the configuration file. */
function Definition({ name }: { readonly name: string }) {
  const definition = useResource(queries.serverDefinition(name), `${name} ${liveReload.value?.at}`)
  return (
    <Card title="Definition">
      <Loaded resource={definition} what="the definition">
        {(data) => (
          <div class="stack">
            <CodeBlock text={data.target} label={`Command or URL of ${name}`} wrap />
            <ServerEditor server={data} onSaved={definition.reload} />
          </div>
        )}
      </Loaded>
    </Card>
  )
}

interface GrantsProps extends Pick<ServerDetail, 'name' | 'health'> {
  onDone(): void
}

/** The OAuth grants that are stored for the server, with buttons to delete them; nothing if there are none. */
function Grants({ name, health, onDone }: GrantsProps) {
  const grants = useResource(queries.grants(name), `${name} ${health}`)
  const signOut = (principal: string | null) => async () => {
    await withNotice(
      () => actions.signOut(name, principal ?? ''),
      () => `Signed out of ${name}.`,
    )
    grants.reload()
    onDone()
  }
  if (!grants.data || grants.data.length === 0) return null
  return (
    <Card title="OAuth sign-ins">
      <ul class="stack">
        {grants.data.map(({ principal, issuer, scopes, grantedAt, expiresAt, renewable }) => (
          <li key={`${principal} ${issuer}`} class="row spread">
            <span>
              <strong>{principal ?? 'All callers'}</strong>, granted by <code>{issuer}</code>{' '}
              <RelativeTime at={grantedAt} />
              <span class="sub">
                {scopes.length > 0 ? `Scopes: ${scopes.join(' ')}. ` : ''}
                {renewable ? 'Renewed automatically.' : expiresAt === null ? '' : <Expiry at={expiresAt} />}
              </span>
            </span>
            <ActionButton
              name="Sign out"
              label={`Sign out of ${name}${principal === null ? '' : ` for ${principal}`}`}
              kind="danger"
              confirm={{
                title: `Sign out of ${name}?`,
                text: `Toolway deletes the token${principal === null ? '' : ` of ${principal}`}. Calls that need it fail until somebody signs in again.`,
              }}
              run={signOut(principal)}
            />
          </li>
        ))}
      </ul>
    </Card>
  )
}

const Expiry = ({ at }: { readonly at: number }) => (
  <>
    Expires <RelativeTime at={at} />.
  </>
)

/** What was shortened, left out or refused; nothing if there are no findings. */
function Findings({ findings }: Pick<ServerDetail, 'findings'>) {
  if (findings.length === 0) return null
  return (
    <Card title="Findings">
      <p class="quiet">Toolway shortened, left out or refused something that this server sent.</p>
      <Facts>
        {findings.map(({ kind, message, setting }) => (
          <Fact key={`${kind} ${message}`} name={<StatusBadge status={findingStatus}>{kind}</StatusBadge>}>
            {message} {setting !== undefined && <span class="quiet">Setting: {setting}</span>}
          </Fact>
        ))}
      </Facts>
    </Card>
  )
}

function ServerFacts({ server }: { readonly server: ServerDetail }) {
  const { process } = server
  return (
    <Card title="State">
      <Facts>
        <Fact name="Health">
          <StatusBadge status={healthStatuses[server.health]} />{' '}
          <span class="quiet">
            <ElapsedTime since={server.since} />
          </span>
        </Fact>
        <Fact name="Reason">{server.reason}</Fact>
        <Fact name="Last error" class="tone-bad">
          {server.lastError}
        </Fact>
        <Fact name="Breaker">
          <StatusBadge status={breakerStatuses[server.breaker]} />
        </Fact>
        <Fact name="Transport">{server.transport}</Fact>
        {server.transport !== 'in-process' && (
          <Fact name="Protocol">
            {server.era ? `${server.protocolVersion} (${server.era} era)` : 'unknown until first used'}
          </Fact>
        )}
        <Fact name="Tools">
          {isListed(server)
            ? `${formatCount(server.tools)}, ${formatCount(server.toolTokens)} tokens of context`
            : 'unknown until first used'}
        </Fact>
        <Fact name="Ping latency">{formatDuration(server.latencyMs)}</Fact>
        <Fact name="Process">
          {process ? (
            <>
              <code>{process.pid}</code>, started <RelativeTime at={process.startedAt} />,{' '}
              {pluralize(process.restarts, 'restart')}
            </>
          ) : server.transport === 'stdio' && !isAdmin.value ? (
            'visible to admins only'
          ) : server.transport === 'stdio' ? (
            'not running; starts on demand'
          ) : (
            'none'
          )}
        </Fact>
      </Facts>
      {isAdmin.value && (
        <p class="row">
          <a href={withQuery(pathTo('audit'), { server: server.name })}>View audit records</a>
          <a href={withQuery(pathTo('pins'), { server: server.name })}>View definitions</a>
        </p>
      )}
    </Card>
  )
}

interface ServerActionsProps {
  readonly server: ServerDetail
  onDone(): void
}

function ServerActions({ server, onDone }: ServerActionsProps) {
  const { name, paused, health, transport } = server
  const run = (action: ServerAction) => async () => {
    await withNotice(
      async () => {
        const after = await actions.server(name, action)
        updateLiveServer(after)
        return actionOutcome(action, server, after)
      },
      (outcome) => outcome,
    )
    onDone()
  }
  // A server that is disabled in the configuration can only be enabled there.
  if (health === 'disabled' && !paused) return <span class="quiet">Disabled in the configuration</span>
  if (paused) return <ActionButton name="Turn on" icon="play" kind="primary" run={run('enable')} />
  const signIn = () =>
    withNotice(
      async () => location.assign((await actions.signIn(name)).url),
      () => `Opening the sign-in page for ${name}…`,
    )
  return (
    <>
      {health === 'needs-auth' && <ActionButton name="Sign in" icon="play" kind="primary" run={signIn} />}
      <ActionButton name="Refresh tools" run={run('refresh')} />
      {transport !== 'in-process' && (
        <ActionButton
          name="Restart"
          icon="refresh"
          confirm={{
            title: `Restart ${name}?`,
            text: 'This closes and reopens its connection and restarts its process, if it has one. Calls in flight fail, but may already have changed something.',
          }}
          run={run('restart')}
        />
      )}
      <ActionButton
        name="Turn off"
        icon="pause"
        kind="danger"
        confirm={{
          title: `Turn off ${name}?`,
          text: 'Its tools disappear from all lists and calls to them are refused until you turn it on again or Toolway restarts. The configuration does not change.',
        }}
        run={run('disable')}
      />
    </>
  )
}
