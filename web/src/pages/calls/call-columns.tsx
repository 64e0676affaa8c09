import type { CallView } from '../../../../src/admin/contract.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { numberColumn, textColumn } from '../../components/columns.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { type Column, RowLink } from '../../components/table.tsx'
import { ClockTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

/** The link to a call. It keeps the filters. */
export const callLink = (id: string): string => pathTo('calls', id) + (query.value.size > 0 ? `?${query.value}` : '')

/** A call's server and tool, or else its operation. */
export const targetOf = ({ server, name, operation }: CallView): string =>
  [server, name].filter((part) => part !== '').join('.') || operation

/** Notes on a call. They mention only what differs from the usual case, a tool call made directly by an agent. */
const notesOf = ({ operation, parent }: CallView): string =>
  [operation !== 'call_tool' && operation, parent !== null && 'caused by another call'].filter(Boolean).join(', ')

export const callColumns: readonly Column<CallView>[] = [
  { title: 'Time', sortBy: ({ at }) => at, descendingFirst: true, cell: ({ at }) => <ClockTime at={at} /> },
  {
    title: 'Target',
    sortBy: targetOf,
    truncate: true,
    cell: (call) => (
      <>
        <RowLink href={callLink(call.id)}>
          <BreakableName name={targetOf(call)} />
        </RowLink>
        {notesOf(call) !== '' && <span class="sub">{notesOf(call)}</span>}
      </>
    ),
  },
  textColumn('Agent', ({ agent }) => agent, { minScreen: 'middle', alone: true }),
  {
    title: 'Outcome',
    sortBy: ({ outcome, code }) => `${outcome} ${code}`,
    cell: ({ outcome, code }) => (
      <>
        <StatusBadge status={outcomeStatuses[outcome]} />
        {code !== null && (
          <span class="sub breakable">
            <BreakableName name={code} />
          </span>
        )}
      </>
    ),
  },
  { title: 'Cache', minScreen: 'wide', alone: true, sortBy: ({ cache }) => cache, cell: ({ cache }) => cache ?? '' },
  numberColumn('Duration', ({ ms }) => ms, { format: formatDuration }),
]
