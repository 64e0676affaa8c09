const relativeFormat = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })
const dateTimeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
const timeFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const dayFormat = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

const day = 86_400_000

/** Units, and the shortest time that they are used for. Months are too coarse for the lifetime of a key. */
const steps = [
  ['year', 365.25 * day, 365.25 * day],
  ['month', 30.4375 * day, 100 * day],
  ['day', day, day],
  ['hour', 3_600_000, 3_600_000],
  ['minute', 60_000, 60_000],
  ['second', 1000, 1000],
] as const

/**
 * Formats a time relative to now: `now`, `12s ago`, `3d ago`. Differences under 1.5 s count as now, because the clocks
 * of the browser and the gateway may differ slightly. Future times are rounded: a key that was just created for 90 days
 * expires `in 90d`.
 */
export function formatRelativeTime(at: number, now: number): string {
  const difference = at - now
  if (Math.abs(difference) < 1500) return 'now'
  const [unit, length] = steps.find(([, , shortest]) => Math.abs(difference) >= shortest) ?? ['second', 1000]
  const number = difference / length
  return relativeFormat.format(number > 0 ? Math.round(number) : Math.trunc(number), unit)
}

/** Formats date and time in the user's locale and time zone, for tooltips. */
export const formatDateTime = (at: number): string => dateTimeFormat.format(at)

/** Formats a time of day: `14:03:09`, preceded by the date if it is not today. */
export function formatClockTime(at: number, now: number): string {
  const time = timeFormat.format(at)
  return sameDay(at, now) ? time : `${dayFormat.format(at)}, ${time}`
}

const sameDay = (a: number, b: number): boolean => new Date(a).toDateString() === new Date(b).toDateString()

/** The value for an `<input type="datetime-local">`: the local time without a zone. */
export function toLocalInput(at: number): string {
  const date = new Date(at)
  const two = (number: number) => String(number).padStart(2, '0')
  const dayPart = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${dayPart}T${two(date.getHours())}:${two(date.getMinutes())}`
}

/** The time entered in an `<input type="datetime-local">`. Undefined if the input is empty or incomplete. */
export function fromLocalInput(text: string): number | undefined {
  const at = new Date(text).getTime()
  return text === '' || Number.isNaN(at) ? undefined : at
}
