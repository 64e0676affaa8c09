import { useSignal } from '@preact/signals'
import { type ApiError, asApiError } from './request.ts'
import { type Resource, useResource } from './resource.ts'

interface HasCursor {
  readonly nextCursor: string | null
}

/** A list that is loaded page by page. */
export interface PagedList<Page> {
  readonly first: Resource<Page>
  readonly pages: readonly Page[]
  readonly hasMore: boolean
  readonly loadingMore: boolean
  readonly moreError: ApiError | undefined
  loadMore(): void
}

interface FurtherPages<Page> {
  readonly key: string
  readonly pages: readonly Page[]
  readonly loading: boolean
  readonly error: ApiError | undefined
}

/** Loads the first page, and one more with each `loadMore`. When `key` changes, starts over with the first page. */
export function usePages<Page extends HasCursor>(
  loadPage: (cursor: string | undefined) => (signal: AbortSignal | undefined) => Promise<Page>,
  key: string,
): PagedList<Page> {
  const first = useResource(loadPage(undefined), key)
  const none = { key, pages: [], loading: false, error: undefined }
  const state = useSignal<FurtherPages<Page>>(none)
  const further = state.value.key === key ? state.value : none
  const pages = first.data ? [first.data, ...further.pages] : []
  const cursor = pages.at(-1)?.nextCursor ?? undefined

  const loadMore = async () => {
    if (cursor === undefined || further.loading) return
    state.value = { ...further, loading: true, error: undefined }
    const isCurrent = () => state.peek().key === key
    try {
      const page = await loadPage(cursor)(undefined)
      if (isCurrent()) state.value = { ...further, pages: [...further.pages, page], loading: false }
    } catch (thrown) {
      const error = asApiError(thrown)
      if (isCurrent()) state.value = { ...further, loading: false, error }
    }
  }

  return {
    first,
    pages,
    hasMore: cursor !== undefined,
    loadingMore: further.loading,
    moreError: further.error,
    loadMore,
  }
}
