import { type Signal, useSignal } from '@preact/signals'
import type { CallView } from '../../../../src/serve/admin/contract.ts'
import { filterCalls, mergeCalls } from '../../api/call-log.ts'
import { queries } from '../../api/endpoints.ts'
import { liveCalls, maxLiveCalls } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { SearchField, SelectFilter, TimeFilter } from '../../components/filters.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState, LoadError, Loading } from '../../components/states.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { Table } from '../../components/table.tsx'
import { formatCount, pluralize } from '../../format/number.ts'
import { query } from '../../routing/location.ts'
import { callColumns } from './call-columns.tsx'
import { CallPanel } from './call-panel.tsx'
import './calls.css'
import { CodeBlock } from '../../components/code-block.tsx'
import { Icon } from '../../components/icon.tsx'
import { pathTo } from '../../routing/route.ts'
import { parseTime } from '../../routing/time-range.ts'

const outcomes = Object.entries(outcomeStatuses).map(([value, { label }]) => [value, label] as const)

/** A live list of calls, with the details of one call beside it. */
export function Calls({ id }: { readonly id: string | undefined }) {
  const param = (name: string) => query.value.get(name) ?? ''
  const filter = { agent: param('agent'), server: param('server'), outcome: param('outcome'), text: param('q') }
  const [from, to] = [parseTime(query.value.get('from')), parseTime(query.value.get('to'))]
  // Load matching calls that are older than those from the event stream.
  const earlier = useResource(
    queries.calls({ ...filter, from, to, limit: maxLiveCalls }),
    JSON.stringify([filter, from, to]),
    {
      pollWhenOffline: true,
    },
  )
  const paused = useSignal<readonly CallView[] | undefined>(undefined)
  const all = mergeCalls(paused.value ?? liveCalls.value, earlier.data ?? [], 2 * maxLiveCalls)
  const rows = filterCalls(all, filter).filter(({ at }) => at >= (from ?? 0) && at < (to ?? Number.POSITIVE_INFINITY))
  const names = (key: 'agent' | 'server') =>
    [...new Set(liveCalls.value.map((call) => call[key]))].filter(Boolean).sort()
  const waiting = earlier.loading && earlier.data === undefined && all.length === 0
  return (
    <Page
      title="Calls"
      note="Live and past calls. They are kept for a limited time; the audit log has all of them."
      actions={<PauseButton paused={paused} />}
    >
      <div class="filters">
        <SearchField label="Search calls" />
        <SelectFilter label="Agent" name="agent" options={names('agent')} all="all" />
        <SelectFilter label="Server" name="server" options={names('server')} all="all" />
        <SelectFilter label="Outcome" name="outcome" options={outcomes} all="any" />
        <TimeFilter label="From" name="from" />
        <TimeFilter label="To" name="to" />
      </div>
      {earlier.error && <LoadError error={earlier.error} what="earlier calls" retry={earlier.reload} />}
      <div class={id === undefined ? '' : 'split'}>
        <div class="card split-list">
          {waiting && <Loading what="the calls" />}
          {!waiting && rows.length === 0 && <NoCalls filtered={all.length > 0} />}
          {rows.length > 0 && (
            <>
              <Table
                label="Calls"
                rows={rows.slice(0, 200)}
                keyOf={(call) => call.id}
                columns={callColumns(id !== undefined)}
                current={(call) => call.id === id}
              />
              <p class="table-foot">
                {rows.length > 200
                  ? `The newest 200 of ${pluralize(rows.length, 'call')}`
                  : pluralize(rows.length, 'call')}
                {rows.length < all.length && ` of ${all.length}`}
              </p>
            </>
          )}
        </div>
        {id !== undefined && <CallPanel key={id} id={id} />}
      </div>
    </Page>
  )
}

function NoCalls({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <EmptyState title="No matching calls">
        <p class="quiet">
          Calls are kept for a limited time. <a href={pathTo('audit')}>The audit log</a> has all of them.
        </p>
      </EmptyState>
    )
  }
  return (
    <EmptyState title="No calls yet">
      <p>
        Calls appear here as soon as they start. <a href="/">Connect a client</a>, or make a call yourself:
      </p>
      <CodeBlock text="toolway call native.hash data=hello algorithm=sha256" label="Command to make a call" />
      <p class="quiet">
        Or <a href={pathTo('tools')}>try a tool</a> in the browser.
      </p>
    </EmptyState>
  )
}

/** Pauses the list, and counts the calls that arrive in the meantime. */
function PauseButton({ paused }: { readonly paused: Signal<readonly CallView[] | undefined> }) {
  const frozen = paused.value
  const known = new Set(frozen?.map(({ id }) => id))
  const newCalls = frozen ? liveCalls.value.filter(({ id }) => !known.has(id)).length : 0
  return (
    <>
      {frozen && <span class="quiet">{formatCount(newCalls)} new</span>}
      <button
        type="button"
        class="button"
        data-pause
        title={frozen ? 'Resume live updates (p)' : 'Pause live updates (p)'}
        onClick={() => (paused.value = frozen ? undefined : liveCalls.peek())}
      >
        <Icon name={frozen ? 'play' : 'pause'} size={14} /> {frozen ? 'Resume' : 'Pause'}
      </button>
    </>
  )
}
