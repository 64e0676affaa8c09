import { useEffect, useRef } from 'preact/hooks'
import type { PinPage, PinView } from '../../../../src/serve/admin/contract.ts'
import { queries } from '../../api/endpoints.ts'
import { liveInbox } from '../../api/live.ts'
import { usePages } from '../../api/paged.ts'
import type { Resource } from '../../api/resource.ts'
import { isAdmin } from '../../api/session.ts'
import { BreakableName } from '../../components/breakable-name.tsx'
import { SearchField, SelectFilter } from '../../components/filters.tsx'
import { LoadMore } from '../../components/load-more.tsx'
import { Page } from '../../components/page.tsx'
import { AdminsOnly, EmptyState, Loaded } from '../../components/states.tsx'
import { type Status, StatusBadge } from '../../components/status-badge.tsx'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { RelativeTime } from '../../components/times.tsx'
import { query } from '../../routing/location.ts'
import { pathTo } from '../../routing/route.ts'

const note = 'Definitions of tools, prompts and instructions, compared with those that were approved.'

export function Pins() {
  if (!isAdmin.value) {
    return (
      <Page title="Definitions">
        <AdminsOnly what="the definitions" />
      </Page>
    )
  }
  return <PinList />
}

function PinList() {
  const text = query.value.get('q') ?? ''
  const show = query.value.get('show') ?? ''
  const filter = { query: text, show }
  const pins = usePages<PinPage>((cursor) => queries.pins({ ...filter, cursor }), JSON.stringify(filter))
  useReloadOnInboxChange(pins.first)
  const rows = pins.pages.flatMap((page) => page.pins)
  return (
    <Page title="Definitions" note={note}>
      <div class="filters">
        <SearchField label="Search definitions" />
        <SelectFilter label="Show" name="show" options={['open']} all="all" />
      </div>
      <div class="card">
        <Loaded resource={pins.first} what="the definitions">
          {({ mode, total }) =>
            rows.length > 0 ? (
              <>
                <Table label="Definitions" rows={rows} keyOf={({ label }) => label} columns={pinColumns} />
                <LoadMore list={pins} shown={rows.length} total={total} itemName="definition" />
              </>
            ) : (
              <EmptyState title={mode === 'off' ? 'Definitions are not pinned' : 'No definitions'}>
                <p class="quiet">
                  {mode === 'off'
                    ? 'Set policy.pins to warn or quarantine to notice changes.'
                    : 'Definitions are pinned when a server is first listed.'}
                </p>
              </EmptyState>
            )
          }
        </Loaded>
      </div>
    </Page>
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
  { title: 'State', sortBy: (pin) => statusOf(pin).label, cell: (pin) => <StatusBadge status={statusOf(pin)} /> },
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
  kind === 'instructions' ? `instructions:${server}` : `${kind === 'prompt' ? 'prompt:' : ''}${server}.${name}`

export function statusOf({ blocked, quarantined, open, condition }: PinView): Status {
  if (blocked) return { tone: 'bad', shape: 'barred', label: 'blocked' }
  if (quarantined) return { tone: 'bad', shape: 'barred', label: `${condition}, quarantined` }
  return open ? { tone: 'warn', shape: 'triangle', label: condition } : { tone: 'ok', shape: 'dot', label: condition }
}

/** Reloads when the inbox changes, because definitions that wait for a decision are in it. */
export function useReloadOnInboxChange({ reload }: Pick<Resource<unknown>, 'reload'>): void {
  const inbox = liveInbox.value
  const previous = useRef(inbox)
  useEffect(() => {
    if (previous.current !== undefined && previous.current !== inbox) reload()
    previous.current = inbox
  }, [inbox])
}
