import type { ServerDetail } from '../../../../src/serve/admin/contract.ts'
import { isAdmin } from '../../api/session.ts'
import { took } from '../../format/duration.ts'
import { count, counted } from '../../format/number.ts'
import { breakerLooks, healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Ago, Lasting } from '../../parts/moment.tsx'
import { Card } from '../../parts/page.tsx'

export function ServerFacts({ server }: { readonly server: ServerDetail }) {
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
        <dd>{count(server.tools)}</dd>
        <dt>Ping latency</dt>
        <dd>{took(server.latencyMs)}</dd>
        <dt>Process</dt>
        <dd>
          {process ? (
            <>
              <code>{process.pid}</code>, started <Ago at={process.startedAt} />, {counted(process.restarts, 'restart')}
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
