import type { Signal } from '@preact/signals'
import type { Figures, Stats } from '../../../../src/serve/admin/contract.ts'
import { took } from '../../format/duration.ts'
import { count, share } from '../../format/number.ts'
import { Icon } from '../../parts/icon.tsx'
import { Name } from '../../parts/name.tsx'
import { type Column, RowLink } from '../../parts/table.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'

type Row = Stats['rows'][number]

const orders = {
  calls: ({ calls }: Figures) => calls,
  averageMs: ({ averageMs }: Figures) => averageMs ?? -1,
  p50Ms: ({ p50Ms }: Figures) => p50Ms ?? -1,
  p95Ms: ({ p95Ms }: Figures) => p95Ms ?? -1,
  p99Ms: ({ p99Ms }: Figures) => p99Ms ?? -1,
  errors: ({ calls, errors }: Figures) => (calls > 0 ? errors / calls : 0),
  denials: ({ denials }: Figures) => denials,
} as const

export type SortBy = keyof typeof orders

/** Descending. */
export const sorted = (rows: readonly Row[], by: SortBy): readonly Row[] =>
  rows.toSorted((a, b) => orders[by](b) - orders[by](a))

const linkOf = (by: Stats['by'], name: string): string =>
  ({
    server: pathTo('servers', name),
    tool: withQuery(pathTo('calls'), { q: name }),
    agent: withQuery(pathTo('calls'), { agent: name }),
    operation: withQuery(pathTo('calls'), { q: name }),
  })[by]

export function statColumns(by: Stats['by'], sort: Signal<SortBy>): readonly Column<Row>[] {
  const figure = (title: string, key: SortBy, cell: (row: Row) => string, from?: 'middle' | 'wide'): Column<Row> => ({
    title,
    end: true,
    ...(from && { from }),
    sorted: sort.value === key ? 'descending' : undefined,
    head: (
      <button type="button" class="sort" onClick={() => (sort.value = key)}>
        {title} {sort.value === key && <Icon name="down" size={11} />}
      </button>
    ),
    cell,
  })
  return [
    {
      title: titles[by],
      cell: ({ name }) => (
        <RowLink href={linkOf(by, name)}>
          <Name of={name} />
        </RowLink>
      ),
    },
    figure('Calls', 'calls', ({ calls }) => count(calls)),
    figure('Average', 'averageMs', ({ averageMs }) => took(averageMs), 'wide'),
    figure('p50', 'p50Ms', ({ p50Ms }) => took(p50Ms), 'middle'),
    figure('p95', 'p95Ms', ({ p95Ms }) => took(p95Ms)),
    figure('p99', 'p99Ms', ({ p99Ms }) => took(p99Ms), 'middle'),
    figure('Errors', 'errors', ({ errors, calls }) => share(errors, calls)),
    figure('Denials', 'denials', ({ denials }) => count(denials), 'middle'),
  ]
}

const titles = { server: 'Server', tool: 'Tool', agent: 'Agent', operation: 'Operation' } as const
