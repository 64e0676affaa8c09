import type { AuditPage, AuditRow } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { type PagedList, usePages } from '../../api/paged.ts'
import { isAdmin } from '../../api/session.ts'
import { pluralize } from '../../format/number.ts'
import { Code } from '../../parts/code.tsx'
import { More } from '../../parts/more.tsx'
import { Page, Refresh } from '../../parts/page.tsx'
import { AdminsOnly, Empty, Loaded } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { query, replaceAddress } from '../../routing/location.ts'
import { parseTime } from '../../routing/time-range.ts'
import '../calls/calls.css'
import { Choose, Search, When, Word } from '../../parts/filters.tsx'
import { Icon } from '../../parts/icon.tsx'
import { pathTo } from '../../routing/route.ts'
import { auditColumns } from './audit-columns.tsx'
import { keyOf } from './audit-row.ts'
import { Chain } from './chain.tsx'
import { RecordPanel } from './record-panel.tsx'

export function Audit() {
  if (isAdmin.value) return <Records />
  return (
    <Page title="Audit">
      <AdminsOnly what="the audit log" />
    </Page>
  )
}

function Records() {
  const given = (name: string) => query.value.get(name) || undefined
  const filter = {
    agent: given('agent'),
    server: given('server'),
    tool: given('tool'),
    parent: given('parent'),
    decision: given('decision'),
    text: given('q'),
    from: parseTime(query.value.get('from')),
    to: parseTime(query.value.get('to')),
  }
  const audit = usePages<AuditPage>((cursor) => queries.audit({ ...filter, cursor }), JSON.stringify(filter))
  const rows = audit.pages.flatMap((page) => page.rows)
  const chosen = rows.find((row) => keyOf(row) === query.value.get('record'))
  const filtered = Object.values(filter).some((value) => value !== undefined)
  return (
    <Page
      title="Audit"
      note="Every call and denial. Arguments are recorded and redacted as configured."
      actions={<Refresh onClick={audit.first.reload} busy={audit.first.loading} />}
    >
      <Chain />
      <AuditFilters />
      <div class={chosen ? 'split' : ''}>
        <div class="card split-list">
          <Source page={audit.pages.at(0)} />
          <Loaded of={audit.first} what="the audit log">
            {() =>
              rows.length === 0 ? <NoRecords filtered={filtered} /> : <List audit={audit} rows={rows} chosen={chosen} />
            }
          </Loaded>
        </div>
        {chosen && <RecordPanel key={keyOf(chosen)} row={chosen} />}
      </div>
    </Page>
  )
}

/** Tells whose records are shown, if there are several replicas. */
function Source({ page }: { readonly page: AuditPage | undefined }) {
  if (page?.source === undefined) return null
  const { source, behind } = page
  if (source === 'local') {
    return (
      <p class="quiet">
        Showing only the records of this replica: PostgreSQL, which has the records of all replicas, is not responding.
      </p>
    )
  }
  const waiting = behind?.records
    ? ` Not copied there yet: ${pluralize(behind.records, 'record')} of this replica.`
    : ''
  return <p class="quiet">{`Records of all replicas, from PostgreSQL.${waiting}`}</p>
}

interface ListProps {
  readonly audit: PagedList<AuditPage>
  readonly rows: readonly AuditRow[]
  readonly chosen: AuditRow | undefined
}

function List({ audit, rows, chosen }: ListProps) {
  return (
    <>
      <Table
        label="Audit records"
        rows={rows}
        keyOf={keyOf}
        columns={auditColumns(chosen !== undefined)}
        current={(row) => row === chosen}
      />
      <More of={audit} shown={rows.length} things="records" />
    </>
  )
}

function NoRecords({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No matching records">
        <p class="quiet">
          Records must match every filter. Use <code>*</code> as a wildcard in agent, server and tool; the search looks
          in the arguments and also accepts <code>name=value</code>.
        </p>
      </Empty>
    )
  }
  return (
    <Empty title="No records yet">
      <p>
        Every call is recorded before it starts and after it ends. Records are chained by hashes, so that changes to
        them are detected.
      </p>
      <Code text="toolway audit tail" label="Command to follow the audit log" />
    </Empty>
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
      <Search label="Search arguments" />
      <Word label="Agent" name="agent" placeholder="ci, team.*" />
      <Word label="Server" name="server" placeholder="github" />
      <Word label="Tool" name="tool" placeholder="delete_*" />
      <Word label="Caused by" name="parent" placeholder="chat or call ID" />
      <Choose label="Decision" name="decision" options={decisions} all="any" />
      <When label="From" name="from" />
      <When label="To" name="to" />
      {query.value.size > 0 && (
        <button type="button" class="button" onClick={() => replaceAddress(pathTo('audit'))}>
          <Icon name="close" size={12} /> Clear
        </button>
      )}
    </div>
  )
}
