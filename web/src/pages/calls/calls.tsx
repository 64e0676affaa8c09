import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { CallView } from '../../../../src/serve/admin/contract.ts'
import { type CallFilter, filterCalls, mergeCalls } from '../../api/call-log.ts'
import { queries } from '../../api/endpoints.ts'
import { type HeldCalls, holdCalls, updateHeld } from '../../api/held-calls.ts'
import { liveCalls, maxLiveCalls, streamState } from '../../api/live.ts'
import { ApiError } from '../../api/request.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { SearchField, SelectFilter, TimeFilter } from '../../components/filters.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState, LoadError, Loading } from '../../components/states.tsx'
import { outcomeStatuses } from '../../components/statuses.ts'
import { Table } from '../../components/table.tsx'
import { formatCount, pluralize } from '../../format/number.ts'
import { formatDateTime } from '../../format/time.ts'
import { query, setQuery } from '../../routing/location.ts'
import { parseTime } from '../../routing/time-range.ts'
import { callColumns } from './call-columns.tsx'
import { CallPanel } from './call-panel.tsx'
import './calls.css'
import { CodeBlock } from '../../components/code-block.tsx'
import { Icon } from '../../components/icon.tsx'
import { pathTo } from '../../routing/route.ts'

const outcomes = Object.entries(outcomeStatuses).map(([value, { label }]) => [value, label] as const)

/** The filters in the address. They combine. */
function filterInAddress(): CallFilter {
  const param = (name: string) => query.value.get(name) ?? ''
  return {
    ...{ agent: param('agent'), server: param('server'), name: param('name'), operation: param('operation') },
    ...{ outcome: param('outcome'), code: param('code'), parent: param('parent'), text: param('q') },
    slowerThan: /^\d+$/.test(param('slowerThan')) ? param('slowerThan') : '',
    from: parseTime(query.value.get('from')),
    to: parseTime(query.value.get('to')),
  }
}

/** Max number of calls that are loaded at once, and max number that the page keeps. */
const loadedAtOnce = 1_000
const maxCalls = 10_000
const rowsPerPage = 50

/** A live list of calls, with the details of one call beside it. */
export function Calls({ id }: { readonly id: string | undefined }) {
  const filter = filterInAddress()
  const key = JSON.stringify(filter)
  // Matching calls that are older than those from the event stream, and those that it left out because there were many.
  const pollEveryMs = streamState.value === 'live' ? 30_000 : 10_000
  const earlier = useResource(queries.calls({ ...filter, limit: loadedAtOnce }), key, { pollEveryMs })
  const older = useOlderCalls(filter, key, earlier.data)
  const shown = useRef<readonly CallView[]>([])
  const hold = useHold(id !== undefined, useIsLoaded(earlier.loading, key), shown)
  const held = hold.held.value
  const loaded = [...(earlier.data ?? []), ...older.calls]
  const isOpen = (call: CallView) => call.id === id
  const openAt = id === undefined ? undefined : (liveCalls.value.find(isOpen) ?? loaded.find(isOpen))?.at
  const live = held
    ? updateHeld(held, liveCalls.value, loaded, openAt, older.isAll)
    : { calls: liveCalls.value, fresh: [] }
  const fresh = filterCalls(live.fresh, filter)
  const known = loaded.filter(({ at }) => !held || at <= Math.max(held.newestAt, openAt ?? 0))
  const all = mergeCalls(live.calls, known, maxCalls)
  shown.current = all
  const rows = filterCalls(all, filter)
  const isFull = !older.isAll && rows.length >= maxCalls
  const pages = Math.max(1, Math.ceil(rows.length / rowsPerPage))
  const page = Math.min(Math.max(Number(query.value.get('page')) || 1, 1), pages)
  const names = (field: 'agent' | 'server' | 'name' | 'operation' | 'code') =>
    [...new Set(all.map((call) => call[field] ?? ''))].filter(Boolean).sort()
  const waiting = earlier.loading && earlier.data === undefined && all.length === 0
  return (
    <Page
      title="Calls"
      note="Live and past calls. They are kept for a limited time; the audit log has all of them."
      actions={
        <>
          <NewCalls count={fresh.length} full={live.fresh.length >= maxLiveCalls} show={hold.refresh} />
          <PauseButton paused={hold.paused} />
        </>
      }
    >
      <div class="filters">
        <SearchField label="Search calls" />
        <SelectFilter label="Agent" name="agent" options={names('agent')} all="all" />
        <SelectFilter label="Server" name="server" options={names('server')} all="all" />
        <SelectFilter label="Tool" name="name" options={names('name')} all="all" />
        <SelectFilter label="Outcome" name="outcome" options={outcomes} all="any" />
        <SelectFilter label="Code" name="code" options={names('code')} all="any" />
        <SelectFilter label="Slower than" name="slowerThan" options={durations} all="any" />
        {names('operation').length > 1 && (
          <SelectFilter label="Operation" name="operation" options={names('operation')} all="any" />
        )}
        <TimeFilter label="From" name="from" />
        <TimeFilter label="To" name="to" />
      </div>
      <ActiveRange filter={filter} />
      {earlier.error && <LoadError error={earlier.error} what="earlier calls" retry={earlier.reload} />}
      <div class={id === undefined ? '' : 'split'}>
        <div class="card split-list" {...hold.handlers}>
          {waiting && <Loading what="the calls" />}
          {!waiting && rows.length === 0 && <NoCalls filtered={all.length > 0 || isFiltered(filter)} />}
          {rows.length > 0 && (
            <>
              <Table
                label="Calls"
                rows={rows}
                offset={(page - 1) * rowsPerPage}
                limit={rowsPerPage}
                keyOf={(call) => call.id}
                columns={callColumns(id !== undefined)}
                current={(call) => call.id === id}
              />
              <div class="table-foot">
                <span>
                  {older.isAll ? pluralize(rows.length, 'call') : `The latest ${formatCount(rows.length)} calls`}
                  {isFull && '; for older ones, set “To”'}
                  {older.error && <span class="tone-bad"> · {older.error.message}</span>}
                </span>
                <span class="row">
                  {pages > 1 && <Pager page={page} pages={pages} />}
                  {page === pages && !older.isAll && !isFull && (
                    <button
                      type="button"
                      class="button tiny"
                      aria-disabled={older.loading}
                      onClick={() => older.load(rows.at(-1)?.at ?? 0)}
                    >
                      {older.loading ? 'Loading…' : 'Load older calls'}
                    </button>
                  )}
                </span>
              </div>
            </>
          )}
        </div>
        {id !== undefined && <CallPanel key={id} id={id} />}
      </div>
    </Page>
  )
}

const durations = [
  ['100', '100 ms'],
  ['500', '500 ms'],
  ['1000', '1 s'],
  ['5000', '5 s'],
  ['30000', '30 s'],
] as const

const isFiltered = (filter: CallFilter): boolean =>
  Object.values(filter).some((value) => value !== '' && value !== undefined)

/** Shows the active time range and parent, with a button to clear them. */
function ActiveRange({ filter: { from, to, parent } }: { readonly filter: CallFilter }) {
  if (from === undefined && to === undefined && parent === '') return null
  return (
    <p class="row">
      {parent !== '' && (
        <span class="chip">
          caused by <code>{parent}</code>
        </span>
      )}
      {from !== undefined && <span class="chip">from {formatDateTime(from)}</span>}
      {to !== undefined && <span class="chip">to {formatDateTime(to)}</span>}
      <button type="button" class="button tiny" onClick={() => setQuery({ from: '', to: '', parent: '' })}>
        Show all
      </button>
    </p>
  )
}

/** Whether the list for these filters has been loaded, or could not be. It stays so while it is loaded again. */
function useIsLoaded(loading: boolean, key: string): boolean {
  const loaded = useSignal<string | undefined>(undefined)
  // Loading begins after the render with new filters, so only the end of loading counts.
  useLayoutEffect(() => {
    if (!loading) loaded.value = key
  }, [loading])
  return loaded.value === key
}

/**
 * Keeps the list from moving while the pointer is on it, the focus is in it, a call is open or the user paused it. The
 * list is held as it was at that moment; if the filters change, as it is once it has been loaded for them.
 */
function useHold(open: boolean, loaded: boolean, shown: { readonly current: readonly CallView[] }) {
  const paused = useSignal(false)
  const pointed = useSignal(false)
  const focused = useSignal(false)
  const held = useSignal<HeldCalls | undefined>(undefined)
  const wanted = paused.value || (loaded && (open || pointed.value || focused.value))
  // A call that was loaded may be newer than those from the event stream, and must not vanish under the pointer.
  const holdShown = () => holdCalls(mergeCalls(liveCalls.peek(), shown.current, maxCalls))
  useLayoutEffect(() => {
    held.value = wanted ? (held.peek() ?? holdShown()) : undefined
  }, [wanted])
  return {
    ...{ held, paused },
    refresh: () => {
      held.value = holdShown()
    },
    handlers: {
      onPointerEnter: () => (pointed.value = true),
      onPointerLeave: () => (pointed.value = false),
      onFocusIn: () => (focused.value = true),
      onFocusOut: ({ currentTarget, relatedTarget }: FocusEvent) =>
        (focused.value = relatedTarget instanceof Node && (currentTarget as Node).contains(relatedTarget)),
    },
  }
}

interface NewCallsProps {
  readonly count: number
  /** Whether there may be more than the browser keeps. */
  readonly full: boolean
  show(): void
}

function NewCalls({ count, full, show }: NewCallsProps) {
  if (count === 0) return null
  return (
    <button type="button" class="button" onClick={show}>
      {formatCount(count)}
      {full ? '+' : ''} new
    </button>
  )
}

function Pager({ page, pages }: { readonly page: number; readonly pages: number }) {
  const go = (to: number) => setQuery({ page: to === 1 ? '' : String(to) })
  return (
    <nav class="row" aria-label="Pages of the list">
      <button type="button" class="button tiny" aria-disabled={page === 1} onClick={() => page > 1 && go(page - 1)}>
        Newer
      </button>
      <span>
        {page} of {pages}
      </span>
      <button
        type="button"
        class="button tiny"
        aria-disabled={page === pages}
        onClick={() => page < pages && go(page + 1)}
      >
        Older
      </button>
    </nav>
  )
}

/**
 * Calls that began before those in `latest`, which were loaded first. They are dropped when the filter changes, and if
 * calls between them and `latest` are missing because many have come.
 */
function useOlderCalls(filter: CallFilter, key: string, latest: readonly CallView[] = []) {
  const none = { key, calls: [] as readonly CallView[], isAll: latest.length < loadedAtOnce }
  const state = useSignal(none)
  const loading = useSignal(false)
  const error = useSignal<ApiError | undefined>(undefined)
  const { value } = state
  const isNext = value.key === key && (latest.at(-1)?.at ?? 0) <= (value.calls[0]?.at ?? 0)
  const current = isNext ? value : none
  const load = async (before: number) => {
    if (loading.peek()) return
    loading.value = true
    error.value = undefined
    try {
      // Include calls of the same millisecond; those that are known already are merged.
      const found = await queries.calls({ ...filter, to: Math.floor(before) + 1, limit: loadedAtOnce })(undefined)
      // With the latest ones that have ended: they still follow those that are the latest when more have come.
      const ended = latest.filter(({ outcome }) => outcome !== 'running')
      state.value = { key, calls: [...ended, ...current.calls, ...found], isAll: found.length < loadedAtOnce }
    } catch (thrown) {
      error.value = thrown instanceof ApiError ? thrown : new ApiError(0, 'FAILED', String(thrown))
    }
    loading.value = false
  }
  return { ...current, loading: loading.value, error: error.value, load: (before: number) => void load(before) }
}

function NoCalls({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <EmptyState title="No matching calls">
        <p class="quiet">
          Calls are kept for a limited time.{' '}
          {isAdmin.value ? <a href={pathTo('audit')}>The audit log</a> : 'The audit log'} has all of them.
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

/** Pauses the list, also while nobody looks at it. */
function PauseButton({ paused }: { readonly paused: Signal<boolean> }) {
  return (
    <button
      type="button"
      class="button"
      data-pause
      title={paused.value ? 'Resume live updates (p)' : 'Pause live updates (p)'}
      onClick={() => (paused.value = !paused.value)}
    >
      <Icon name={paused.value ? 'play' : 'pause'} size={14} /> {paused.value ? 'Resume' : 'Pause'}
    </button>
  )
}
