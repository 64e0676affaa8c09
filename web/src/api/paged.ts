import { useSignal } from '@preact/signals'
import { ApiError } from './request.ts'
import { type Resource, useResource } from './resource.ts'

interface PageOf {
  readonly nextCursor: string | null
}

/** A list that is loaded page by page. */
export interface Paged<Page> {
  readonly first: Resource<Page>
  readonly pages: readonly Page[]
  readonly more: boolean
  readonly loadingMore: boolean
  readonly moreError: ApiError | undefined
  loadMore(): void
}

interface Further<Page> {
  readonly key: string
  readonly pages: readonly Page[]
  readonly loading: boolean
  readonly error: ApiError | undefined
}

/** Loads the first page, and each further one on `loadMore`. A new `key` starts over. */
export function usePages<Page extends PageOf>(
  ask: (cursor: string | undefined) => (signal: AbortSignal | undefined) => Promise<Page>,
  key: string,
): Paged<Page> {
  const first = useResource(ask(undefined), key)
  const none = { key, pages: [], loading: false, error: undefined }
  const state = useSignal<Further<Page>>(none)
  const further = state.value.key === key ? state.value : none
  const pages = first.data ? [first.data, ...further.pages] : []
  const cursor = pages.at(-1)?.nextCursor ?? undefined

  const loadMore = async () => {
    if (cursor === undefined || further.loading) return
    state.value = { ...further, loading: true, error: undefined }
    const still = () => state.peek().key === key
    try {
      const page = await ask(cursor)(undefined)
      if (still()) state.value = { ...further, pages: [...further.pages, page], loading: false }
    } catch (thrown) {
      const error = thrown instanceof ApiError ? thrown : new ApiError(0, 'FAILED', String(thrown))
      if (still()) state.value = { ...further, loading: false, error }
    }
  }

  return {
    first,
    pages,
    more: cursor !== undefined,
    loadingMore: further.loading,
    moreError: further.error,
    loadMore,
  }
}
