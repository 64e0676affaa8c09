const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
const withinDay = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

const steps = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const

/** `now`, `12s ago`, `3d ago`. Differences under 1.5 s count as now, because clocks differ a little. */
export function relative(at: number, now: number): string {
  const difference = at - now
  if (Math.abs(difference) < 1500) return 'now'
  const [unit, length] = steps.find(([, size]) => Math.abs(difference) >= size) ?? ['second', 1000]
  return words.format(Math.trunc(difference / length), unit)
}

/** Date and time in the user's locale and time zone, for tooltips. */
export const exact = (at: number): string => full.format(at)

/** `14:03:09`, preceded by the date if it is not today. */
export function clockTime(at: number, now: number): string {
  const time = withinDay.format(at)
  return sameDay(at, now) ? time : `${day.format(at)}, ${time}`
}

const sameDay = (a: number, b: number): boolean => new Date(a).toDateString() === new Date(b).toDateString()

/** Value of an `<input type="datetime-local">`: local time without a zone. */
export function localInput(at: number): string {
  const date = new Date(at)
  const two = (number: number) => String(number).padStart(2, '0')
  const dayPart = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${dayPart}T${two(date.getHours())}:${two(date.getMinutes())}`
}

/** Undefined if the input is empty or incomplete. */
export function fromLocalInput(text: string): number | undefined {
  const at = new Date(text).getTime()
  return text === '' || Number.isNaN(at) ? undefined : at
}
