import type { ServerView } from '../../../../src/serve/admin/contract.ts'
import { took } from '../../format/duration.ts'
import { count, rate, share } from '../../format/number.ts'
import { breakerLooks, healthLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { Lasting } from '../../parts/moment.tsx'
import { Name } from '../../parts/name.tsx'
import { type Column, RowLink } from '../../parts/table.tsx'
import { pathTo } from '../../routing/route.ts'

export const serverColumns: readonly Column<ServerView>[] = [
  {
    title: 'Server',
    clip: true,
    cell: ({ name, description }) => (
      <>
        <RowLink href={pathTo('servers', name)}>
          <Name of={name} />
        </RowLink>
        {description !== '' && <span class="sub">{description}</span>}
      </>
    ),
  },
  {
    title: 'Health',
    cell: ({ health, reason, since, paused }) => (
      <>
        <Mark look={healthLooks[health]} title={reason}>
          {paused ? 'turned off' : health}
        </Mark>
        <span class="sub">
          <Lasting since={since} />
        </span>
      </>
    ),
  },
  {
    title: 'Transport',
    from: 'middle',
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
    from: 'wide',
    cell: ({ breaker }) => <Mark look={breakerLooks[breaker]} />,
  },
  { title: 'Tools', end: true, cell: ({ tools }) => count(tools) },
  { title: 'Calls/s', end: true, from: 'middle', cell: ({ calls }) => rate(calls.perSecond) },
  { title: 'p95', end: true, cell: ({ calls }) => took(calls.p95Ms) },
  { title: 'Errors', end: true, from: 'middle', cell: ({ calls }) => share(calls.errors, calls.calls) },
  {
    title: 'Restarts',
    end: true,
    from: 'wide',
    cell: ({ process }) => (process ? count(process.restarts) : ''),
  },
]
