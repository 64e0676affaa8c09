import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { PinPage, PinView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { liveInbox } from '../../api/live.ts'
import { usePages } from '../../api/paged.ts'
import { type Resource, useReloadOnChange, useResource } from '../../api/resource.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SearchField, SelectFilter, TextFilter } from '../../components/filters.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { pinStatuses } from '../../components/statuses.ts'
import { type Column, RowLink } from '../../components/table.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { pluralize } from '../../format/number.ts'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'
import { DiffLines, Findings } from './definition-lines.tsx'

const note = 'Definitions of tools, prompts, skills and instructions, compared with those that were approved.'

export function Pins() {
  const text = query.value.get('q') ?? ''
  const show = query.value.get('show') ?? ''
  const server = query.value.get('server') ?? ''
  const filter = { query: text, server, show }
  const pins = usePages<PinPage>((cursor) => queries.pins({ ...filter, cursor }), JSON.stringify(filter))
  useReloadOnInboxChange(pins.first)
  const rows = pins.pages.flatMap((page) => page.pins)
  return (
    <Page
      title="Definitions"
      note={note}
      actions={
        rows.some(({ open }) => open) && <ApproveAll filter={{ query: text, server }} onDone={pins.first.reload} />
      }
    >
      <div class="filters">
        <SearchField label="Search definitions" />
        <TextFilter label="Server" name="server" placeholder="github" />
        <SelectFilter label="Show" name="show" options={['open']} all="all" />
      </div>
      <div class="card">
        <PagedTable
          label="Definitions"
          list={pins}
          rows={rows}
          itemName="definition"
          keyOf={({ label }) => label}
          columns={pinColumns}
          empty={({ mode }) => (
            <EmptyState title={mode === 'off' ? 'Definitions are not pinned' : 'No definitions'}>
              <p class="quiet">
                {mode === 'off'
                  ? 'Set policy.pins to warn or quarantine to notice changes.'
                  : 'Definitions are pinned when a server is first listed.'}
              </p>
            </EmptyState>
          )}
        />
      </div>
    </Page>
  )
}

/** How many definitions can be approved at once. */
const maxApproved = 500

interface ApproveAllProps {
  readonly filter: { readonly query: string; readonly server: string }
  onDone(): void
}

/** Approves all definitions that match the filter and wait for a decision, after showing what changed in each. */
function ApproveAll({ filter, onDone }: ApproveAllProps) {
  const open = useSignal(false)
  return (
    <>
      <Button icon="check" onClick={() => (open.value = true)}>
        Approve all shown…
      </Button>
      {open.value && <ApproveDialog filter={filter} onClose={() => (open.value = false)} onDone={onDone} />}
    </>
  )
}

function ApproveDialog({ filter, onClose, onDone }: ApproveAllProps & { onClose(): void }) {
  const asked = { ...filter, show: 'open', limit: maxApproved }
  const waiting = useResource(queries.pins(asked), JSON.stringify(asked))
  /** The list stays as it was opened: exactly what was read is approved. */
  const shown = useRef<PinPage>(undefined)
  shown.current ??= waiting.data
  const busy = useSignal(false)
  const approve = async (pins: readonly PinView[]) => {
    if (busy.value) return
    busy.value = true
    await withNotice(
      () => actions.approvePins(pins),
      ({ approved }) => `Approved ${pluralize(approved, 'definition')}. Agents can use them now.`,
    )
    busy.value = false
    onDone()
    onClose()
  }
  return (
    <Dialog title="Approve definitions" onClose={onClose} wide>
      <Loaded resource={{ ...waiting, data: shown.current }} what="the definitions">
        {({ pins, total }) => (
          <>
            <p>{summaryOf(pins, total)}</p>
            <ul class="stack tight">
              {pins.map((pin) => (
                <WaitingPin key={`${pin.label} ${pin.hash}`} pin={pin} />
              ))}
            </ul>
            <div class="actions">
              <Button onClick={onClose}>Cancel</Button>
              <Button kind="primary" disabled={busy.value || pins.length === 0} onClick={() => void approve(pins)}>
                Approve {pluralize(pins.length, 'definition')}
              </Button>
            </div>
          </>
        )}
      </Loaded>
    </Dialog>
  )
}

function summaryOf(pins: readonly PinView[], total: number): string {
  const servers = new Set(pins.map(({ server }) => server)).size
  const flagged = pins.filter(({ flags }) => flags.length > 0).length
  return [
    `${pluralize(pins.length, 'definition')} of ${pluralize(servers, 'server')} will be approved as shown here.`,
    ...(flagged > 0 ? [`The scanner found something in ${flagged} of them.`] : []),
    ...(total > pins.length ? [`${pluralize(total - pins.length, 'more definition')} will still wait.`] : []),
  ].join(' ')
}

function WaitingPin({ pin }: { readonly pin: PinView }) {
  const opened = useSignal(false)
  return (
    <li>
      <details onToggle={({ currentTarget }) => (opened.value = currentTarget.open)}>
        <summary>
          {shownLabel(pin)}{' '}
          <span class="quiet">{pin.changed.length > 0 ? `changed: ${pin.changed.join(', ')}` : pin.state}</span>{' '}
          {pin.flags.length > 0 && <span class="tone-bad">{pin.flags.join(', ')}</span>}
        </summary>
        {opened.value && <WaitingDefinition pin={pin} />}
      </details>
    </li>
  )
}

function WaitingDefinition({ pin }: { readonly pin: PinView }) {
  const detail = useResource(queries.pin(pin.label), pin.label)
  return (
    <Loaded resource={detail} what="the definition">
      {({ definitions }) => {
        const definition = definitions.find(({ hash }) => hash === pin.hash)
        if (!definition) return <p class="problem">It has changed again. Close this dialog and review it.</p>
        return (
          <>
            <Findings findings={definition.findings} />
            <DiffLines
              lines={definition.lines}
              label={`Difference of ${shownLabel(pin)} from the approved definition`}
            />
          </>
        )
      }}
    </Loaded>
  )
}

const pinColumns: readonly Column<PinView>[] = [
  {
    title: 'Definition',
    sortBy: (pin) => shownLabel(pin),
    truncate: true,
    cell: (pin) => (
      <>
        <RowLink href={pathTo('pins', pin.label)}>
          <BreakableName name={shownLabel(pin)} />
        </RowLink>
        {pin.changed.length > 0 && <span class="sub">changed: {pin.changed.join(', ')}</span>}
      </>
    ),
  },
  { title: 'State', sortBy: ({ state }) => state, cell: ({ state }) => <StatusBadge status={pinStatuses[state]} /> },
  {
    title: 'Findings',
    minScreen: 'middle',
    sortBy: ({ flags }) => flags.length,
    descendingFirst: true,
    cell: ({ flags }) => flags.length > 0 && <span class="tone-bad">{flags.join(', ')}</span>,
  },
  {
    title: 'Approved',
    minScreen: 'wide',
    sortBy: ({ approvedBy }) => approvedBy,
    cell: ({ approvedBy }) => approvedBy ?? 'no',
  },
  {
    title: 'Seen',
    minScreen: 'middle',
    sortBy: ({ seenAt }) => seenAt,
    descendingFirst: true,
    cell: ({ seenAt }) => <RelativeTime at={seenAt} />,
  },
]

/** The label with invisible characters spelt out, as in the name. */
export const shownLabel = ({ kind, server, name }: PinView): string =>
  kind === 'instructions' ? `instructions:${server}` : `${kind === 'tool' ? '' : `${kind}:`}${server}.${name}`

/** Reloads when the inbox changes, because definitions that wait for a decision are in it. */
export const useReloadOnInboxChange = (pins: Pick<Resource<unknown>, 'reload'>): void =>
  useReloadOnChange(pins, liveInbox.value)
