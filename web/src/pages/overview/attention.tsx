import type { Overview } from '../../../../src/serve/admin/contract.ts'
import { withoutExcerpt } from '../../format/excerpt.ts'
import { pluralize } from '../../format/number.ts'
import { Ago, Lasting } from '../../parts/moment.tsx'
import { Note } from '../../parts/states.tsx'
import { pathTo } from '../../routing/route.ts'

/** Warnings; renders nothing if all is well. */
export function Attention({ of: { breakers, servers, reload } }: { readonly of: Overview }) {
  const troubled = servers.unhealthy + servers['needs-auth'] + servers.degraded
  if (breakers.length === 0 && troubled === 0 && reload.lastError === null) return null
  return (
    <Note tone="warn">
      {breakers.map(({ server, state, since }) => (
        <p key={server}>
          The circuit breaker of <a href={pathTo('servers', server)}>{server}</a> is <strong>{state}</strong> (
          <Lasting since={since} />
          ):{' '}
          {state === 'open'
            ? 'calls fail immediately until the next attempt.'
            : 'a few calls test whether it works again.'}
        </p>
      ))}
      {troubled > 0 && (
        <p>
          <a href={pathTo('servers')}>{pluralize(troubled, 'server')}</a> {troubled === 1 ? 'is' : 'are'} not healthy.
        </p>
      )}
      {reload.lastError !== null && (
        <p>
          The last reload of the <a href={pathTo('config')}>configuration</a> failed (<Ago at={reload.lastAt} />
          ); the previous configuration is still active. {withoutExcerpt(reload.lastError)}
        </p>
      )}
    </Note>
  )
}
