import type { CallView } from '../../../../src/serve/admin/contract.ts'
import { formatDuration } from '../../format/duration.ts'
import { outcomeLooks } from '../../parts/looks.ts'
import { Mark } from '../../parts/mark.tsx'
import { At } from '../../parts/moment.tsx'
import { Name } from '../../parts/name.tsx'
import { type Column, RowLink } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

/** Keeps the filters. */
export const callLink = (id: string): string => pathTo('calls', id) + (query.value.size > 0 ? `?${query.value}` : '')

/** Server and tool, or else the operation. */
export const whatOf = ({ server, name, operation }: CallView): string =>
  [server, name].filter((part) => part !== '').join('.') || operation

/** Only what differs from the usual case, a tool call made directly by an agent. */
const notesOf = ({ operation, parent }: CallView): string =>
  [operation !== 'call_tool' && operation, parent !== null && 'caused by another call'].filter(Boolean).join(', ')

/** Fewer columns (`narrow`) while a call is open beside the list. */
export function callColumns(narrow: boolean): readonly Column<CallView>[] {
  const columns: readonly (Column<CallView> & { readonly alone?: true })[] = [
    { title: 'Time', cell: ({ at }) => <At at={at} /> },
    {
      title: 'Target',
      clip: true,
      cell: (call) => (
        <>
          <RowLink href={callLink(call.id)}>
            <Name of={whatOf(call)} />
          </RowLink>
          {notesOf(call) !== '' && <span class="sub">{notesOf(call)}</span>}
        </>
      ),
    },
    { title: 'Agent', from: 'middle', alone: true, cell: ({ agent }) => agent },
    {
      title: 'Outcome',
      cell: ({ outcome, code }) => (
        <>
          <Mark look={outcomeLooks[outcome]} />
          {code !== null && <span class="sub">{code}</span>}
        </>
      ),
    },
    { title: 'Cache', from: 'wide', alone: true, cell: ({ cache }) => cache ?? '' },
    { title: 'Duration', end: true, cell: ({ ms }) => formatDuration(ms) },
  ]
  return narrow ? columns.filter(({ alone }) => !alone) : columns
}
