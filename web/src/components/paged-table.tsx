import type { ComponentChildren } from 'preact'
import type { PagedList } from '../api/paged.ts'
import { LoadMore } from './load-more.tsx'
import { Loaded } from './states.tsx'
import { Table, type TableProps } from './table.tsx'

interface TablePage {
  readonly nextCursor: string | null
  readonly total?: number
}

interface PagedTableProps<Row, Page extends TablePage> extends TableProps<Row> {
  readonly list: PagedList<Page>
  /** What a row shows, in the singular. */
  readonly itemName: string
  /** The order, if it cannot be changed, such as `newest first`. */
  readonly order?: string
  /** Shown if there are no rows. */
  readonly empty: (first: Page) => ComponentChildren
  readonly what?: string
}

/** A table whose rows are loaded page by page. */
export function PagedTable<Row, Page extends TablePage>({
  list,
  itemName,
  order,
  empty,
  what,
  ...table
}: PagedTableProps<Row, Page>) {
  const { rows } = table
  return (
    <Loaded resource={list.first} what={what ?? `the ${itemName}s`}>
      {(first) =>
        rows.length === 0 ? (
          empty(first)
        ) : (
          <>
            <Table {...table} />
            <LoadMore list={list} shown={rows.length} total={first.total} itemName={itemName} order={order} />
          </>
        )
      }
    </Loaded>
  )
}
