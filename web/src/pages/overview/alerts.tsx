import type { Overview } from '../../../../src/admin/contract.ts'
import { liveInbox } from '../../api/live.ts'
import { Note } from '../../components/states.tsx'
import { ElapsedTime, RelativeTime } from '../../components/times.tsx'
import { withoutExcerpt } from '../../format/excerpt.ts'
import { pluralize } from '../../format/number.ts'
import { pathTo } from '../../routing/route.ts'

/** Warnings for users who have no inbox. Renders nothing if there are none. */
export function Alerts({ overview: { breakers, unhealthy, reload } }: { readonly overview: Overview }) {
  const { lastError } = reload
  if (liveInbox.value || (breakers.length === 0 && unhealthy === 0 && lastError === null)) return null
  return (
    <Note tone="warn">
      {breakers.map(({ server, state, since }) => (
        <p key={server}>
          The circuit breaker for <a href={pathTo('servers', server)}>{server}</a> is <strong>{state}</strong> (
          <ElapsedTime since={since} />
          ):{' '}
          {state === 'open'
            ? 'calls fail immediately until the next attempt.'
            : 'a few calls test whether the server works again.'}
        </p>
      ))}
      {unhealthy > 0 && (
        <p>
          <a href={pathTo('servers')}>{pluralize(unhealthy, 'server')}</a> {unhealthy === 1 ? 'is' : 'are'} not healthy.
        </p>
      )}
      {lastError !== null && (
        <p>
          The last reload of the <a href={pathTo('config')}>configuration</a> failed (
          <RelativeTime at={reload.lastAt} />
          ); the previous configuration is still active. {withoutExcerpt(lastError)}
        </p>
      )}
    </Note>
  )
}
