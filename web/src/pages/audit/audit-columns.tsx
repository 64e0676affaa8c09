import type { AuditRow } from '../../../../src/serve/admin/contract.ts'
import { formatDuration } from '../../format/duration.ts'
import { decisionLook } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { At } from '../../parts/moment.tsx'
import { Name } from '../../parts/name.tsx'
import { type Column, RowLink } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { updateQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { argumentsText, keyOf, latencyOf, reasonOf, targetOf, textIn, timeOf } from './audit-row.ts'

/** Keeps the filters. */
export const recordLink = (key: string | undefined): string =>
  pathTo('audit') + updateQuery(query.value.toString(), { record: key })

/** Fewer columns (`narrow`) while a record is open beside the list. */
export function auditColumns(narrow: boolean): readonly Column<AuditRow>[] {
  const columns: readonly (Column<AuditRow> & { readonly alone?: true })[] = [
    { title: 'Time', cell: (row) => <At at={timeOf(row)} /> },
    {
      title: 'Target',
      clip: true,
      cell: (row) => (
        <>
          <RowLink href={recordLink(keyOf(row))}>
            <Name of={targetOf(row)} />
          </RowLink>
          <span class="sub">{argumentsText(row)}</span>
        </>
      ),
    },
    { title: 'Agent', from: 'middle', alone: true, cell: (row) => textIn(row, 'agent') },
    {
      title: 'Decision',
      cell: (row) => (
        <>
          <Mark look={decisionLook(row.decision, row.is_error === true)} />
        </>
      ),
    },
    {
      title: 'Reason',
      from: 'wide',
      alone: true,
      clip: true,
      cell: (row) => <span class="sub mono">{reasonOf(row)}</span>,
    },
    { title: 'Duration', end: true, from: 'middle', cell: (row) => formatDuration(latencyOf(row)) },
  ]
  return narrow ? columns.filter(({ alone }) => !alone) : columns
}
