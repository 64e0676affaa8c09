import type { ServerDetail } from '../../../../src/serve/admin/contract.ts'
import { act, type ServerAction } from '../../api/endpoints.ts'
import { heardOf } from '../../api/live.ts'
import { Action } from '../../parts/action.tsx'
import { attempt } from '../../parts/notices.tsx'

interface ActionsProps {
  readonly server: ServerDetail
  done(): void
}

export function ServerActions({ server: { name, paused, health, transport }, done }: ActionsProps) {
  const run = (action: ServerAction, said: string) => async () => {
    await attempt(
      async () => heardOf(await act.server(name, action)),
      () => said,
    )
    done()
  }
  // Can be enabled only in the configuration.
  if (health === 'disabled' && !paused) return <span class="quiet">Disabled in the configuration</span>
  if (paused) return <Action name="Turn on" icon="play" kind="primary" run={run('enable', `Turned on ${name}.`)} />
  const signIn = () =>
    attempt(
      async () => location.assign((await act.signIn(name)).url),
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
