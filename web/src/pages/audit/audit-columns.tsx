import type { AuditRow } from '../../../../src/serve/admin/contract.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { decisionStatus } from '../../components/statuses.ts'
import { type Column, RowLink } from '../../components/table.tsx'
import { ClockTime } from '../../components/times.tsx'
import { formatDuration } from '../../format/duration.ts'
import { query } from '../../routing/location.ts'
import { updateQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { argumentsText, latencyOf, reasonOf, recordKey, targetOf, textField, timeOf } from './audit-row.ts'

/** The link to a record. It keeps the filters. */
export const recordLink = (key: string | undefined): string =>
  pathTo('audit') + updateQuery(query.value.toString(), { record: key })

/** The columns of the list. With `narrow`, there are fewer columns, because a record is open beside the list. */
export function auditColumns(narrow: boolean): readonly Column<AuditRow>[] {
  const columns: readonly (Column<AuditRow> & { readonly alone?: true })[] = [
    { title: 'Time', cell: (row) => <ClockTime at={timeOf(row)} /> },
    {
      title: 'Target',
      truncate: true,
      cell: (row) => (
        <>
          <RowLink href={recordLink(recordKey(row))}>
            <BreakableName name={targetOf(row)} />
          </RowLink>
          <span class="sub">{argumentsText(row)}</span>
        </>
      ),
    },
    { title: 'Agent', minScreen: 'middle', alone: true, cell: (row) => textField(row, 'agent') },
    {
      title: 'Decision',
      cell: (row) => (
        <>
          <StatusBadge status={decisionStatus(row.decision, row.is_error === true)} />
        </>
      ),
    },
    {
      title: 'Reason',
      minScreen: 'wide',
      alone: true,
      truncate: true,
      cell: (row) => <span class="sub mono">{reasonOf(row)}</span>,
    },
    { title: 'Duration', alignEnd: true, minScreen: 'middle', cell: (row) => formatDuration(latencyOf(row)) },
  ]
  return narrow ? columns.filter(({ alone }) => !alone) : columns
}
