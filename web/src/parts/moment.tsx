import { span } from '../format/duration.ts'
import { clockTime, exact, relative } from '../format/time.ts'
import { now } from '../shell/now.ts'

/** Relative time, with the exact time as tooltip. */
export function Ago({ at }: { readonly at: number | null }) {
  if (at === null) return <span class="quiet">never</span>
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {relative(at, now.value)}
    </time>
  )
}

/** Time since then: `for 3 min`. */
export function Lasting({ since }: { readonly since: number }) {
  return (
    <time dateTime={new Date(since).toISOString()} title={`since ${exact(since)}`}>
      for {span(now.value - since)}
    </time>
  )
}

/** Time of day. */
export function At({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)} class="nowrap">
      {clockTime(at, now.peek())}
    </time>
  )
}
