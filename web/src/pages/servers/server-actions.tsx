import type { ServerDetail } from '../../../../src/serve/admin/contract.ts'
import { act, type ServerAction } from '../../api/endpoints.ts'
import { heardOf } from '../../api/live.ts'
import { Action } from '../../parts/action.tsx'
import { attempt } from '../../parts/notices.tsx'

interface ActionsProps {
  readonly server: ServerDetail
  done(): void
}

/** What can be done to a server by hand. */
export function ServerActions({ server: { name, paused, health, transport }, done }: ActionsProps) {
  const run = (action: ServerAction, said: string) => async () => {
    await attempt(
      async () => heardOf(await act.server(name, action)),
      () => said,
    )
    done()
  }
  // Turned off by the configuration: only the configuration turns it on.
  if (health === 'disabled' && !paused) return <span class="quiet">Turned off by the configuration</span>
  if (paused) return <Action name="Turn on" icon="play" kind="primary" run={run('enable', `${name} is on again.`)} />
  const signIn = () =>
    attempt(
      async () => location.assign((await act.signIn(name)).url),
      () => `Off to sign in to ${name}.`,
    )
  return (
    <>
      {health === 'needs-auth' && <Action name="Sign in" icon="play" kind="primary" run={signIn} />}
      <Action name="Refresh its tools" run={run('refresh', `${name} was asked for its tools.`)} />
      {transport !== 'in-process' && (
        <Action
          name="Restart"
          icon="refresh"
          confirm={{
            title: `Restart ${name}?`,
            text: 'Its connection is closed and opened again, its process with it. Calls in flight fail; those that wrote something may have done so.',
          }}
          run={run('restart', `${name} was restarted.`)}
        />
      )}
      <Action
        name="Turn off"
        icon="pause"
        kind="danger"
        confirm={{
          title: `Turn off ${name}?`,
          text: 'Its tools vanish from every list and calls to them are refused, until somebody turns it on here or Toolway starts again. The configuration stays as it is.',
        }}
        run={run('disable', `${name} is off.`)}
      />
    </>
  )
}
