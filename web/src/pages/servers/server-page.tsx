import { Fragment } from 'preact'
import type { ServerDetail } from '../../../../src/serve/admin/contract.ts'
import { actions, queries, type ServerAction } from '../../api/endpoints.ts'
import { liveReload, liveServers, updateLiveServer } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { lazy } from '../../components/lazy.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { breakerStatuses, findingStatus, healthStatuses } from '../../components/statuses.ts'
import { ElapsedTime, RelativeTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { RangeStats } from '../stat-tiles.tsx'

const ServerEditor = lazy('the buttons', async () => (await import('../../config-edit/server-editor.tsx')).ServerEditor)

export function ServerPage({ name }: { readonly name: string }) {
  const loaded = useResource(queries.server(name), name, { pollEveryMs: 5000 })
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
            <RangeStats by="server" name={name} />
            <div class="row">
              <a class="button" href={withQuery(pathTo('tools'), { server: name })}>
                View tools
              </a>
              <a class="button" href={withQuery(pathTo('calls'), { server: name })}>
                View calls
              </a>
              {isAdmin.value && (
                <a class="button" href={withQuery(pathTo('audit'), { server: name })}>
                  View audit records
                </a>
              )}
            </div>
            {isAdmin.value && data.transport !== 'in-process' && <Definition name={name} />}
            <Findings findings={data.findings} />
            <div class="grid-2">
              <ServerFacts server={data} />
              <Stderr lines={data.stderr} transport={data.transport} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
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

/** What was shortened, left out or refused; nothing if there are no findings. */
function Findings({ findings }: Pick<ServerDetail, 'findings'>) {
  if (findings.length === 0) return null
  return (
    <Card title="Findings">
      <p class="quiet">Toolway shortened, left out or refused something that this server sent.</p>
      <dl class="facts">
        {findings.map(({ kind, message, setting }) => (
          <Fragment key={`${kind} ${message}`}>
            <dt>
              <StatusBadge status={findingStatus}>{kind}</StatusBadge>
            </dt>
            <dd>
              {message} {setting !== undefined && <span class="quiet">Setting: {setting}</span>}
            </dd>
          </Fragment>
        ))}
      </dl>
    </Card>
  )
}

function Stderr({ lines, transport }: { readonly lines: readonly string[]; readonly transport: string }) {
  return (
    <Card title="Recent output">
      {lines.length > 0 ? (
        <CodeBlock text={lines.join('\n')} label="End of stderr" wrap />
      ) : (
        <p class="quiet">
          {transport !== 'stdio'
            ? 'Output is available only for servers that Toolway starts (stdio).'
            : isAdmin.value
              ? 'The process has written nothing to stderr since it started.'
              : 'Only admins can see the output.'}
        </p>
      )}
    </Card>
  )
}

function ServerFacts({ server }: { readonly server: ServerDetail }) {
  const { process } = server
  return (
    <Card title="State">
      <dl class="facts">
        <dt>Health</dt>
        <dd>
          <StatusBadge status={healthStatuses[server.health]} />{' '}
          <span class="quiet">
            <ElapsedTime since={server.since} />
          </span>
        </dd>
        {server.reason !== '' && (
          <>
            <dt>Reason</dt>
            <dd>{server.reason}</dd>
          </>
        )}
        {server.lastError !== null && (
          <>
            <dt>Last error</dt>
            <dd class="tone-bad">{server.lastError}</dd>
          </>
        )}
        <dt>Breaker</dt>
        <dd>
          <StatusBadge status={breakerStatuses[server.breaker]} />
        </dd>
        <dt>Transport</dt>
        <dd>{server.transport}</dd>
        {server.transport !== 'in-process' && (
          <>
            <dt>Protocol</dt>
            <dd>{server.era ? `${server.protocolVersion} (${server.era} era)` : 'unknown until first used'}</dd>
          </>
        )}
        <dt>Tools</dt>
        <dd>{formatCount(server.tools)}</dd>
        <dt>Ping latency</dt>
        <dd>{formatDuration(server.latencyMs)}</dd>
        <dt>Process</dt>
        <dd>
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
        </dd>
      </dl>
    </Card>
  )
}

interface ServerActionsProps {
  readonly server: ServerDetail
  onDone(): void
}

function ServerActions({ server: { name, paused, health, transport }, onDone }: ServerActionsProps) {
  const run = (action: ServerAction, message: string) => async () => {
    await withNotice(
      async () => updateLiveServer(await actions.server(name, action)),
      () => message,
    )
    onDone()
  }
  // A server that is disabled in the configuration can only be enabled there.
  if (health === 'disabled' && !paused) return <span class="quiet">Disabled in the configuration</span>
  if (paused)
    return <ActionButton name="Turn on" icon="play" kind="primary" run={run('enable', `Turned on ${name}.`)} />
  const signIn = () =>
    withNotice(
      async () => location.assign((await actions.signIn(name)).url),
      () => `Opening the sign-in page for ${name}…`,
    )
  return (
    <>
      {health === 'needs-auth' && <ActionButton name="Sign in" icon="play" kind="primary" run={signIn} />}
      <ActionButton name="Refresh tools" run={run('refresh', `Refreshed the tool list for ${name}.`)} />
      {transport !== 'in-process' && (
        <ActionButton
          name="Restart"
          icon="refresh"
          confirm={{
            title: `Restart ${name}?`,
            text: 'This closes and reopens its connection and restarts its process, if it has one. Calls in flight fail, but may already have changed something.',
          }}
          run={run('restart', `Restarted ${name}.`)}
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
        run={run('disable', `Turned off ${name}.`)}
      />
    </>
  )
}
