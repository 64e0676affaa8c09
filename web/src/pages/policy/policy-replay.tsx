import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ConfigEdit, PolicyReplay, ReplayChange } from '../../../../src/admin/contract.ts'
import { replayPolicy } from '../../api/replay.ts'
import { type ApiError, asApiError } from '../../api/request.ts'
import { Button } from '../../components/button.tsx'
import { textColumn } from '../../components/columns.ts'
import { Card } from '../../components/page.tsx'
import { SelectField } from '../../components/select-field.tsx'
import { LoadError, Note } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { formatCount, pluralize } from '../../format/number.ts'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

const ranges = { '1': 'last 24 hours', '7': 'last 7 days', '30': 'last 30 days', '90': 'last 90 days' } as const

type State =
  | { readonly running: number; readonly controller: AbortController }
  | { readonly replay: PolicyReplay; readonly days: string }
  | { readonly error: ApiError }

/** Applies an edit to the recorded calls, and shows those that would be decided differently. */
export function PolicyReplayPanel({ edit }: { readonly edit: ConfigEdit }) {
  const days = useSignal<string>('7')
  const state = useSignal<State | undefined>(undefined)
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const running = state.value !== undefined && 'running' in state.value
  const run = async () => {
    const own = new AbortController()
    controller.current = own
    const asked = days.value
    state.value = { running: 0, controller: own }
    try {
      const replay = await replayPolicy(edit, {
        days: Number(asked),
        signal: own.signal,
        onProgress: (records) => {
          state.value = { running: records, controller: own }
        },
      })
      state.value = { replay, days: asked }
    } catch (thrown) {
      if (own.signal.aborted) state.value = undefined
      else state.value = { error: asApiError(thrown) }
    }
  }
  return (
    <Card title="Replay">
      <div class="stack">
        <p class="quiet">Applies the new rules to recorded calls. No tool is called, and nothing is saved.</p>
        <div class="row">
          <SelectField
            label="Calls of the"
            value={days.value}
            options={Object.entries(ranges)}
            disabled={running}
            onChange={(next) => (days.value = next)}
          />
          {running ? (
            <Button onClick={() => controller.current?.abort()}>Cancel</Button>
          ) : (
            <Button onClick={() => void run()}>Replay</Button>
          )}
        </div>
        <div class="stack" role="status">
          {state.value && 'running' in state.value && (
            <p>Replaying… {state.value.running > 0 && `${formatCount(state.value.running)} records read`}</p>
          )}
          {state.value && 'replay' in state.value && <Result replay={state.value.replay} days={state.value.days} />}
        </div>
        {state.value && 'error' in state.value && <LoadError error={state.value.error} what="the replay" />}
      </div>
    </Card>
  )
}

function Result({ replay, days }: { readonly replay: PolicyReplay; readonly days: string }) {
  const { calls, denied, allowed, gone, complete, since } = replay
  const range = ranges[days as keyof typeof ranges]
  const groups = { 'would now be denied': denied, 'would no longer exist': gone, 'would now be allowed': allowed }
  return (
    <>
      <p>
        <strong>
          Of {pluralize(calls, 'call')} in the {range}, {formatCount(denied.calls)} would now be denied and{' '}
          {formatCount(allowed.calls)} allowed
          {gone.calls > 0 && `; ${formatCount(gone.calls)} would fail because the tool would no longer exist`}.
        </strong>
      </p>
      {!complete && (
        <Note tone="warn">
          <p>Only part of the period was replayed. Choose a shorter period.</p>
        </Note>
      )}
      {Object.entries(groups).map(
        ([title, group]) =>
          group.changes.length > 0 && (
            <div key={title} class="stack tight">
              <h3>
                {pluralize(group.calls, 'call')} {title}
              </h3>
              <Table
                label={`Calls that ${title}`}
                rows={group.changes}
                keyOf={({ agent, server, tool, before, after }) => JSON.stringify([agent, server, tool, before, after])}
                columns={columnsFor(since)}
                sort={{ param: `sort-${title.replaceAll(' ', '-')}` }}
              />
              {group.omitted > 0 && <p class="quiet">{pluralize(group.omitted, 'more group')} not shown.</p>}
            </div>
          ),
      )}
    </>
  )
}

const toolOf = ({ server, tool }: ReplayChange): string => `${server}.${tool}`

const columnsFor = (since: number): readonly Column<ReplayChange>[] => [
  {
    title: 'Calls',
    alignEnd: true,
    sortBy: ({ calls }) => calls,
    cell: ({ calls, agent, server, tool }) => (
      <a href={withQuery(pathTo('audit'), { agent, server, tool, from: new Date(since).toISOString() })}>
        {formatCount(calls)}
        <span class="hidden"> in the audit log</span>
      </a>
    ),
  },
  textColumn('Agent', ({ agent }) => agent),
  textColumn('Tool', toolOf),
  { title: 'Rule', minScreen: 'middle', sortBy: ({ after }) => after, cell: ({ after }) => <code>{after}</code> },
  {
    title: 'Before',
    minScreen: 'wide',
    sortBy: ({ before }) => before,
    cell: ({ before }) => before !== null && <code>{before}</code>,
  },
  {
    title: 'Last',
    sortBy: ({ last }) => last,
    descendingFirst: true,
    cell: ({ last, examples: [latest] }) =>
      latest === undefined ? (
        <RelativeTime at={last} />
      ) : (
        <a href={pathTo('calls', latest)}>
          <RelativeTime at={last} />
        </a>
      ),
  },
]
