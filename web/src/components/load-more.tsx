import type { PagedList } from '../api/paged.ts'
import { formatCount, pluralize } from '../format/number.ts'
import { Button } from './button.tsx'

interface LoadMoreProps {
  readonly list: Omit<PagedList<unknown>, 'first' | 'pages'>
  readonly shown: number
  /** The total number of items, if known. */
  readonly total: number | undefined
  /** In the singular. */
  readonly itemName: string
  /** The order, if it cannot be changed, such as `newest first`. */
  readonly order: string | undefined
}

/** The footer of a paged list: the number of rows shown, and a button to load more. */
export function LoadMore({ list, shown, total, itemName, order }: LoadMoreProps) {
  return (
    <div class="table-foot">
      <span>
        {total === undefined ? pluralize(shown, itemName) : `${formatCount(shown)} of ${pluralize(total, itemName)}`}
        {order !== undefined && `, ${order}`}
        {list.moreError && <span class="tone-bad"> · {list.moreError.message}</span>}
      </span>
      {list.hasMore && (
        <Button kind="tiny" aria-disabled={list.loadingMore} onClick={() => list.loadMore()}>
          {list.loadingMore ? 'Loading…' : 'Show more'}
        </Button>
      )}
    </div>
  )
}
