import type { PagedList } from '../api/paged.ts'
import { formatCount } from '../format/number.ts'

interface MoreProps {
  readonly of: Omit<PagedList<unknown>, 'first' | 'pages'>
  readonly shown: number
  /** Total number, if known. */
  readonly total?: number
  readonly things: string
}

/** Footer of a paged list: number of rows shown, and a button to load more. */
export function More({ of, shown, total, things }: MoreProps) {
  return (
    <div class="table-foot">
      <span>
        {total === undefined
          ? `${formatCount(shown)} ${things}`
          : `${formatCount(shown)} of ${formatCount(total)} ${things}`}
        {of.moreError && <span class="tone-bad"> · {of.moreError.message}</span>}
      </span>
      {of.hasMore && (
        <button type="button" class="button tiny" aria-disabled={of.loadingMore} onClick={() => of.loadMore()}>
          {of.loadingMore ? 'Loading…' : 'Show more'}
        </button>
      )}
    </div>
  )
}
