import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AuditPage, AuditRow } from '../../../../src/admin/contract.ts'
import { auditFile, queries } from '../../api/endpoints.ts'
import { usePages } from '../../api/paged.ts'
import { useResource } from '../../api/resource.ts'
import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Page, RefreshButton } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { EmptyState, Note } from '../../components/states.tsx'
import { pluralize } from '../../format/number.ts'
import { query, replaceAddress } from '../../routing/location.ts'
import { parseTime } from '../../routing/time-range.ts'
import '../calls/calls.css'
import { SearchField, SelectFilter, TextFilter, TimeFilter } from '../../components/filters.tsx'
import { pathTo } from '../../routing/route.ts'
import { auditColumns } from './audit-columns.tsx'
import { filterIn, recordKey } from './audit-row.ts'
import { HashChain } from './hash-chain.tsx'
import { RecordPanel } from './record-panel.tsx'

export function Audit() {
  const filter = filterIn(query.value)
  const audit = usePages<AuditPage>((cursor) => queries.audit({ ...filter, cursor }), JSON.stringify(filter))
  const rows = audit.pages.flatMap((page) => page.rows)
  const record = query.value.get('record')
  const isSelected = (row: AuditRow) => recordKey(row) === record
  const listed = rows.find(isSelected)
  const isMissing = record !== null && audit.first.data !== undefined && !listed
  const linked = useLinkedRecords(isMissing)
  const selected = listed ?? linked?.find(isSelected)
  const filtered = Object.values(filter).some((value) => value !== undefined)
  return (
    <Page
      title="Audit"
      note="Every call and denial. Arguments are recorded and redacted as configured."
      actions={
        <>
          <a class="button" href={auditFile(filter, 'jsonl')} title="All matching operations as JSON Lines" download>
            Export JSON
          </a>
          <a class="button" href={auditFile(filter, 'csv')} title="All matching operations for spreadsheets" download>
            Export CSV
          </a>
          <RefreshButton onClick={audit.first.reload} busy={audit.first.loading} />
        </>
      }
    >
      <HashChain />
      <AuditFilters />
      {isMissing && linked && !selected && (
        <Note>
          <p>The record {record} was not found. Search for it with the filters.</p>
        </Note>
      )}
      <div class={selected ? 'split' : ''}>
        <div class="card split-list">
          <RecordSource page={audit.pages.at(0)} />
          <SlowSearch loading={audit.first.loading} />
          <PagedTable
            label="Audit records"
            what="the audit log"
            list={audit}
            rows={rows}
            itemName="record"
            order="newest first"
            keyOf={recordKey}
            columns={auditColumns}
            narrow={selected !== undefined}
            current={(row) => row === selected}
            empty={() => <NoRecords filtered={filtered} />}
          />
        </div>
        {selected && <RecordPanel key={recordKey(selected)} row={selected} />}
      </div>
    </Page>
  )
}

/** The records of the millisecond that a link to a record names, if the record is not in the list; empty if it is. */
function useLinkedRecords(isMissing: boolean): readonly AuditRow[] | undefined {
  const from = isMissing ? parseTime(query.value.get('at')) : undefined
  const load = async (signal: AbortSignal) => {
    const page = from === undefined ? undefined : await queries.audit({ from, to: from + 1, limit: 500 })(signal)
    return { from, rows: page?.rows ?? [] }
  }
  const { data } = useResource(load, `${from}`)
  return data?.from === from ? data?.rows : undefined
}

/** How long a search may take before the page explains why. */
const slowSearchMs = 3000

/** Explains why a search takes long. */
function SlowSearch({ loading }: { readonly loading: boolean }) {
  const slow = useSignal(false)
  useEffect(() => {
    slow.value = false
    const timer = loading ? setTimeout(() => (slow.value = true), slowSearchMs) : undefined
    return () => clearTimeout(timer)
  }, [loading])
  return (
    <p class="quiet" role="status" hidden={!slow.value}>
      {slow.value &&
        'Still searching. Toolway indexes records before it searches them; the first search of a long log can take a minute.'}
    </p>
  )
}

/** Says whether the records shown are from this replica or from all replicas. Renders nothing without an archive. */
function RecordSource({ page }: { readonly page: AuditPage | undefined }) {
  if (page?.source === undefined) return null
  const { source, behind } = page
  if (source === 'local') {
    return (
      <p class="quiet">
        Showing only this replica's records: PostgreSQL, which has the records of all replicas, is not responding.
      </p>
    )
  }
  const pending = behind?.records ? ` Not yet copied from this replica: ${pluralize(behind.records, 'record')}.` : ''
  return <p class="quiet">{`Showing the records of all replicas, from PostgreSQL.${pending}`}</p>
}

function NoRecords({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <EmptyState title="No matching records">
        <p class="quiet">
          Records must match every filter. Use <code>*</code> as a wildcard in agent, principal, server and tool; the
          search looks in the arguments and also accepts <code>name=value</code>.
        </p>
      </EmptyState>
    )
  }
  return (
    <EmptyState title="No records yet">
      <p>
        Every call is recorded before it starts and after it ends. Records form a hash chain, so that changes to them
        can be detected.
      </p>
      <CodeBlock text="toolway audit tail" label="Command to follow the audit log" />
    </EmptyState>
  )
}

const decisions = [
  ['ALLOW', 'ALLOW'],
  ['DENY', 'DENY'],
  ['ERROR', 'ERROR'],
  ['TIMEOUT', 'TIMEOUT'],
] as const

function AuditFilters() {
  return (
    <div class="filters">
      <SearchField label="Search arguments" />
      <TextFilter label="Agent" name="agent" placeholder="ci, team.*" />
      <TextFilter label="Principal" name="principal" placeholder="key:alice" />
      <TextFilter label="Server" name="server" placeholder="github" />
      <TextFilter label="Tool" name="tool" placeholder="delete_*" />
      <TextFilter label="Caused by" name="parent" placeholder="chat or call ID" />
      <SelectFilter label="Decision" name="decision" options={decisions} all="any" />
      <TimeFilter label="From" name="from" />
      <TimeFilter label="To" name="to" />
      {query.value.size > 0 && (
        <Button icon="close" onClick={() => replaceAddress(pathTo('audit'))}>
          Clear
        </Button>
      )}
    </div>
  )
}
