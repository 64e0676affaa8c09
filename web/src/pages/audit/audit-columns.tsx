import type { AuditRow } from '../../../../src/admin/contract.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { numberColumn, textColumn } from '../../components/columns.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { decisionStatus } from '../../components/statuses.ts'
import { type Column, RowLink } from '../../components/table.tsx'
import { ClockTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { query } from '../../routing/location.ts'
import { updateQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { argumentsText, latencyOf, reasonOf, recordKey, targetOf, textField, timeOf } from './audit-row.ts'

/**
 * The link to a record, or to none. It keeps the filters. The record's time is part of it: with it, the record is found
 * if it is not among the first ones.
 */
export const recordLink = (row: AuditRow | undefined): string =>
  pathTo('audit') +
  updateQuery(query.value.toString(), { record: row && recordKey(row), at: row && textField(row, 'time') })

const agentOf = (row: AuditRow): string => textField(row, 'agent')

export const auditColumns: readonly Column<AuditRow>[] = [
  { title: 'Time', sortBy: timeOf, descendingFirst: true, cell: (row) => <ClockTime at={timeOf(row)} /> },
  {
    title: 'Target',
    sortBy: targetOf,
    truncate: true,
    cell: (row) => (
      <>
        <RowLink href={recordLink(row)}>
          <BreakableName name={targetOf(row)} />
        </RowLink>
        <span class="sub">{argumentsText(row)}</span>
      </>
    ),
  },
  textColumn('Agent', agentOf, { minScreen: 'middle', alone: true }),
  {
    title: 'Decision',
    sortBy: (row) => decisionStatus(row.decision, row.is_error === true).label,
    cell: (row) => (
      <>
        <StatusBadge status={decisionStatus(row.decision, row.is_error === true)} />
      </>
    ),
  },
  {
    title: 'Reason',
    sortBy: reasonOf,
    minScreen: 'wide',
    alone: true,
    truncate: true,
    cell: (row) => <span class="sub mono">{reasonOf(row)}</span>,
  },
  numberColumn('Duration', latencyOf, { format: formatDuration, minScreen: 'middle' }),
]
