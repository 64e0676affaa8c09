import { formatLongDuration } from '../format/duration.ts'
import { formatClockTime, formatDateTime, formatRelativeTime } from '../format/time.ts'
import { now } from '../shell/now.ts'

/** A relative time, with the exact time as a tooltip. */
export function RelativeTime({ at }: { readonly at: number | null }) {
  if (at === null) return <span class="quiet">never</span>
  return (
    <time dateTime={new Date(at).toISOString()} title={formatDateTime(at)}>
      {formatRelativeTime(at, now.value)}
    </time>
  )
}

/** The time that has passed since `since`, such as `for 3 min`. */
export function ElapsedTime({ since }: { readonly since: number }) {
  return (
    <time dateTime={new Date(since).toISOString()} title={`since ${formatDateTime(since)}`}>
      for {formatLongDuration(now.value - since)}
    </time>
  )
}

/** The time of day, with the exact time as a tooltip. */
export function ClockTime({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={formatDateTime(at)} class="nowrap">
      {formatClockTime(at, now.peek())}
    </time>
  )
}
