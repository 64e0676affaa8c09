import { useEffect, useRef } from 'preact/hooks'
import { liveOverview } from './live.ts'
import type { Resource } from './resource.ts'

/** Reloads a list of tools when the number of tools changes. */
export function useFollowTools({ reload }: Pick<Resource<unknown>, 'reload'>): void {
  const count = liveOverview.value?.tools
  const before = useRef(count)
  useEffect(() => {
    if (before.current !== undefined && before.current !== count) reload()
    before.current = count
  }, [count])
}
