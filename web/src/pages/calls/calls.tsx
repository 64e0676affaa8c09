import { type Signal, useSignal } from '@preact/signals'
import type { CallView } from '../../../../src/serve/admin/contract.ts'
import { filterCalls, mergeCalls } from '../../api/call-log.ts'
import { queries } from '../../api/endpoints.ts'
import { liveCalls, maxLiveCalls } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { formatCount, pluralize } from '../../format/number.ts'
import { Choose, Search } from '../../parts/filters.tsx'
import { outcomeLooks } from '../../parts/looks.ts'
import { Page } from '../../parts/page.tsx'
import { Empty, Failed, Loading } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { query } from '../../routing/location.ts'
import { callColumns } from './call-columns.tsx'
import { CallPanel } from './call-panel.tsx'
import './calls.css'
import { Code } from '../../parts/code.tsx'
import { Icon } from '../../parts/icon.tsx'
import { pathTo } from '../../routing/route.ts'

const outcomes = Object.entries(outcomeLooks).map(([value, { word }]) => [value, word] as const)

/** Live list of calls, with the details of one call beside it. */
export function Calls({ id }: { readonly id: string | undefined }) {
  const wanted = (name: string) => query.value.get(name) ?? ''
  const filter = { agent: wanted('agent'), server: wanted('server'), outcome: wanted('outcome'), text: wanted('q') }
  // Loads matching calls that are older than those of the event stream.
  const earlier = useResource(queries.calls({ ...filter, limit: maxLiveCalls }), JSON.stringify(filter), {
    withoutStream: true,
  })
  const paused = useSignal<readonly CallView[] | undefined>(undefined)
  const all = mergeCalls(paused.value ?? liveCalls.value, earlier.data ?? [], 2 * maxLiveCalls)
  const rows = filterCalls(all, filter)
  const names = (key: 'agent' | 'server') =>
    [...new Set(liveCalls.value.map((call) => call[key]))].filter(Boolean).sort()
  const waiting = earlier.loading && earlier.data === undefined && all.length === 0
  return (
    <Page
      title="Calls"
      note="Live calls. Only the most recent are kept here; the audit log has all of them."
      actions={<PauseButton paused={paused} />}
    >
      <div class="filters">
        <Search label="Search calls" />
        <Choose label="Agent" name="agent" options={names('agent')} all="all" />
        <Choose label="Server" name="server" options={names('server')} all="all" />
        <Choose label="Outcome" name="outcome" options={outcomes} all="any" />
      </div>
      {earlier.error && <Failed error={earlier.error} what="earlier calls" retry={earlier.reload} />}
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
      <Empty title="No matching calls">
        <p class="quiet">
          Only the most recent calls are kept here. <a href={pathTo('audit')}>The audit log</a> has all of them.
        </p>
      </Empty>
    )
  }
  return (
    <Empty title="No calls yet">
      <p>
        Calls appear here as soon as they start. <a href="/">Connect a client</a>, or make a call yourself:
      </p>
      <Code text="toolway call native.hash data=hello algorithm=sha256" label="Command to make a call" />
      <p class="quiet">
        Or <a href={pathTo('tools')}>try a tool</a> in the browser.
      </p>
    </Empty>
  )
}

/** Pauses the list and counts the calls that arrive meanwhile. */
function PauseButton({ paused }: { readonly paused: Signal<readonly CallView[] | undefined> }) {
  const held = paused.value
  const known = new Set(held?.map(({ id }) => id))
  const missed = held ? liveCalls.value.filter(({ id }) => !known.has(id)).length : 0
  return (
    <>
      {held && <span class="quiet">{formatCount(missed)} new</span>}
      <button
        type="button"
        class="button"
        data-pause
        title={held ? 'Resume live updates (p)' : 'Pause live updates (p)'}
        onClick={() => (paused.value = held ? undefined : liveCalls.peek())}
      >
        <Icon name={held ? 'play' : 'pause'} size={14} /> {held ? 'Resume' : 'Pause'}
      </button>
    </>
  )
}
