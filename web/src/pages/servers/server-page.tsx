import type { ServerDetail } from '../../../../src/serve/admin/contract.ts'
import { actions, queries, type ServerAction } from '../../api/endpoints.ts'
import { liveServers, updateLiveServer } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { formatDuration } from '../../format/duration.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { Action } from '../../parts/action.tsx'
import { Code } from '../../parts/code.tsx'
import { breakerLooks, healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Ago, Lasting } from '../../parts/moment.tsx'
import { attempt } from '../../parts/notices.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { Loaded } from '../../parts/states.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { FigureTiles } from '../figures.tsx'

export function ServerPage({ name }: { readonly name: string }) {
  const asked = useResource(queries.server(name), name, { every: 5000 })
  const live = liveServers.value?.find((server) => server.name === name)
  const server = { ...asked, data: asked.data && { ...asked.data, ...live } }
  const { data } = server
  return (
    <Page
      title={name}
      heading={
        <span class="row">
          {name} {data && <Mark look={healthLooks[data.health]} chip />}
        </span>
      }
      note={data?.description}
      back={{ href: pathTo('servers'), name: 'Servers' }}
      actions={data && <ServerActions server={data} done={asked.reload} />}
    >
      <Loaded of={server} what={`the server ${name}`}>
        {(data) => (
          <>
            <FigureTiles of={data.calls} label={`Statistics of ${name}`} />
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

function Stderr({ lines, transport }: { readonly lines: readonly string[]; readonly transport: string }) {
  return (
    <Card title="Recent output">
      {lines.length > 0 ? (
        <Code text={lines.join('\n')} label="End of stderr" wrap />
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
          <Mark look={healthLooks[server.health]} />{' '}
          <span class="quiet">
            <Lasting since={server.since} />
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
          <Mark look={breakerLooks[server.breaker]} />
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
              <code>{process.pid}</code>, started <Ago at={process.startedAt} />,{' '}
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

interface ActionsProps {
  readonly server: ServerDetail
  done(): void
}

function ServerActions({ server: { name, paused, health, transport }, done }: ActionsProps) {
  const run = (action: ServerAction, said: string) => async () => {
    await attempt(
      async () => updateLiveServer(await actions.server(name, action)),
      () => said,
    )
    done()
  }
  // Can be enabled only in the configuration.
  if (health === 'disabled' && !paused) return <span class="quiet">Disabled in the configuration</span>
  if (paused) return <Action name="Turn on" icon="play" kind="primary" run={run('enable', `Turned on ${name}.`)} />
  const signIn = () =>
    attempt(
      async () => location.assign((await actions.signIn(name)).url),
      () => `Opening the sign-in page of ${name}…`,
    )
  return (
    <>
      {health === 'needs-auth' && <Action name="Sign in" icon="play" kind="primary" run={signIn} />}
      <Action name="Refresh tools" run={run('refresh', `Refreshed the tools of ${name}.`)} />
      {transport !== 'in-process' && (
        <Action
          name="Restart"
          icon="refresh"
          confirm={{
            title: `Restart ${name}?`,
            text: 'This closes and reopens its connection and restarts its process, if it has one. Calls in flight fail, but may already have changed something.',
          }}
          run={run('restart', `Restarted ${name}.`)}
        />
      )}
      <Action
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
