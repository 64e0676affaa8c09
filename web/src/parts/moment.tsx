import { span } from '../format/duration.ts'
import { clockTime, exact, relative } from '../format/time.ts'
import { now } from '../shell/now.ts'

/** When something was, in relation to now; the exact time is in its title. */
export function Ago({ at }: { readonly at: number | null }) {
  if (at === null) return <span class="quiet">never</span>
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {relative(at, now.value)}
    </time>
  )
}

/** How long something has been so. */
export function Lasting({ since }: { readonly since: number }) {
  return (
    <time dateTime={new Date(since).toISOString()} title={`since ${exact(since)}`}>
      for {span(now.value - since)}
    </time>
  )
}

/** When something was, by the clock. */
export function At({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)} class="nowrap">
      {clockTime(at, now.peek())}
    </time>
  )
}
