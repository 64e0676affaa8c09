import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import type { CallPage, CallView } from '../../../../src/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveCalls, reconnections, streamState } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
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
import { pathTo } from '../../routing/route.ts'

const outcomes = Object.entries(outcomeStatuses).map(([value, { label }]) => [value, label] as const)

const exactFilters = ['agent', 'server', 'name', 'operation', 'outcome', 'code', 'parent'] as const

type CallFilter = ReturnType<typeof filterInAddress>

/** The filters in the address. They combine. */
function filterInAddress() {
  const param = (name: string) => query.value.get(name) ?? undefined
  const slowerThan = param('slowerThan') ?? ''
  return {
    ...Object.fromEntries(exactFilters.map((name) => [name, param(name)])),
    parent: param('parent'),
    slowerThan: /^\d+$/.test(slowerThan) ? slowerThan : undefined,
    text: param('q'),
    from: parseTime(query.value.get('from')),
    to: parseTime(query.value.get('to')),
  }
}

const rowsPerPage = 50

/** A live list of calls, with the details of one call beside it. The gateway sorts, filters and counts. */
export function Calls({ id }: { readonly id: string | undefined }) {
  const filter = filterInAddress()
  const sort = query.value.get('sort') ?? undefined
  const pager = usePager(JSON.stringify([filter, sort]))
  const key = JSON.stringify([filter, sort, pager.cursor, reconnections.value])
  // Calls of other workers, and those that the event stream left out because there were many.
  const pollEveryMs = streamState.value === 'live' ? 30_000 : 10_000
  const isFirst = pager.cursor === undefined
  const list = useResource(
    async (signal) => {
      const values = { ...filter, sort, cursor: pager.cursor, limit: rowsPerPage }
      return { key, page: await queries.calls(values)(signal) }
    },
    key,
    isFirst ? { pollEveryMs, follow: liveCalls } : {},
  )
  const { from, to } = filter
  const choices = useResource(queries.callChoices({ from, to }), JSON.stringify([from, to]), { pollEveryMs })
  const namesOf = (field: 'agent' | 'server' | 'name' | 'operation' | 'code') => choices.data?.[field] ?? []
  const hold = useHold(id !== undefined, list.data, key)
  const page = hold.shown?.page
  const fresh = list.data && page ? list.data.page.total - page.total : 0
  return (
    <Page
      title="Calls"
      note="Live and past calls. They are kept for a limited time; the audit log has all of them."
      actions={
        <>
          {isFirst && <NewCalls count={fresh} show={hold.refresh} />}
          <PauseButton paused={hold.paused} />
        </>
      }
    >
      <div class="filters">
        <SearchField label="Search calls" />
        <SelectFilter label="Agent" name="agent" options={namesOf('agent')} all="all" />
        <SelectFilter label="Server" name="server" options={namesOf('server')} all="all" />
        <SelectFilter label="Tool" name="name" options={namesOf('name')} all="all" />
        <SelectFilter label="Outcome" name="outcome" options={outcomes} all="any" />
        <SelectFilter label="Code" name="code" options={namesOf('code')} all="any" />
        <SelectFilter label="Slower than" name="slowerThan" options={durations} all="any" />
        {namesOf('operation').length > 1 && (
          <SelectFilter label="Operation" name="operation" options={namesOf('operation')} all="any" />
        )}
        <TimeFilter label="From" name="from" />
        <TimeFilter label="To" name="to" />
      </div>
      <ActiveRange filter={filter} />
      {list.error && <LoadError error={list.error} what="the calls" retry={list.reload} />}
      <div class={id === undefined ? '' : 'split'}>
        <div class="card split-list" data-stale={list.data?.key !== key || undefined} {...hold.handlers}>
          {!page && list.loading && <Loading what="the calls" />}
          {page?.total === 0 && <NoCalls filtered={Object.values(filter).some((value) => value !== undefined)} />}
          {page && page.total > 0 && <CallList page={page} id={id} pager={pager} />}
        </div>
        {id !== undefined && <CallPanel key={id} id={id} />}
      </div>
    </Page>
  )
}

interface CallListProps {
  readonly page: CallPage
  readonly id: string | undefined
  readonly pager: Pager
}

function CallList({ page: { calls, total, nextCursor }, id, pager }: CallListProps) {
  const live = new Map(liveCalls.value.map((call) => [call.id, call]))
  const latest = (call: CallView) => (call.outcome === 'running' ? (live.get(call.id) ?? call) : call)
  const pages = Math.max(pager.page, Math.ceil(total / rowsPerPage))
  return (
    <>
      <Table
        label="Calls"
        rows={calls.map(latest)}
        keyOf={(call) => call.id}
        columns={callColumns}
        narrow={id !== undefined}
        current={(call) => call.id === id}
        sort={{ initial: '-time', remote: true }}
      />
      <div class="table-foot">
        <span>{pluralize(total, 'call')}</span>
        {pages > 1 && (
          <nav class="row" aria-label="Pages of the list">
            <Button kind="tiny" aria-disabled={pager.page === 1} onClick={pager.previous}>
              Previous
            </Button>
            <span>
              {formatCount(pager.page)} of {formatCount(pages)}
            </span>
            <Button
              kind="tiny"
              aria-disabled={nextCursor === null}
              onClick={() => nextCursor !== null && pager.next(nextCursor)}
            >
              Next
            </Button>
          </nav>
        )}
      </div>
    </>
  )
}

type Pager = ReturnType<typeof usePager>

/** The page of a list. With another `key`, it is the first one again. */
function usePager(key: string) {
  const state = useSignal({ key, cursors: [] as readonly string[] })
  const cursors = state.value.key === key ? state.value.cursors : []
  const go = (next: readonly string[]) => {
    state.value = { key, cursors: next }
  }
  return {
    cursor: cursors.at(-1),
    page: cursors.length + 1,
    next: (cursor: string) => go([...cursors, cursor]),
    previous: () => go(cursors.slice(0, -1)),
  }
}

const durations = [
  ['100', '100 ms'],
  ['500', '500 ms'],
  ['1000', '1 s'],
  ['5000', '5 s'],
  ['30000', '30 s'],
] as const

/** Shows the active time range and parent, with a button to clear them. */
function ActiveRange({ filter: { from, to, parent } }: { readonly filter: CallFilter }) {
  if (from === undefined && to === undefined && parent === undefined) return null
  return (
    <p class="row">
      {parent !== undefined && (
        <span class="chip">
          caused by <code>{parent}</code>
        </span>
      )}
      {from !== undefined && <span class="chip">from {formatDateTime(from)}</span>}
      {to !== undefined && <span class="chip">to {formatDateTime(to)}</span>}
      <Button kind="tiny" onClick={() => setQuery({ from: '', to: '', parent: '' })}>
        Show all
      </Button>
    </p>
  )
}

interface LoadedPage {
  /** What it was loaded for. */
  readonly key: string
  readonly page: CallPage
}

/**
 * Keeps the list from moving while the pointer is on it, the focus is in it, a call is open or the user paused it. With
 * another `key`, it is as it was when it was loaded for that.
 */
function useHold(open: boolean, loaded: LoadedPage | undefined, key: string) {
  const paused = useSignal(false)
  const pointed = useSignal(false)
  const focused = useSignal(false)
  const held = useSignal<LoadedPage | undefined>(undefined)
  const isLoaded = loaded?.key === key
  const wanted = paused.value || (isLoaded && (open || pointed.value || focused.value))
  useLayoutEffect(() => {
    if (!wanted) held.value = undefined
    else if (held.peek()?.key !== loaded?.key) held.value = loaded
  }, [wanted, loaded?.key])
  return {
    paused,
    shown: held.value?.key === loaded?.key ? held.value : loaded,
    refresh: () => {
      held.value = loaded
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
  show(): void
}

function NewCalls({ count, show }: NewCallsProps) {
  if (count <= 0) return null
  return <Button onClick={show}>{formatCount(count)} new</Button>
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
    <Button
      icon={paused.value ? 'play' : 'pause'}
      data-pause
      title={paused.value ? 'Resume live updates (p)' : 'Pause live updates (p)'}
      onClick={() => (paused.value = !paused.value)}
    >
      {paused.value ? 'Resume' : 'Pause'}
    </Button>
  )
}
