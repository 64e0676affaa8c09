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

/** `now`, `12 sec. ago`, `3 days ago`. Clocks differ a little: what is barely ahead is now. */
export function relative(at: number, now: number): string {
  const difference = at - now
  if (Math.abs(difference) < 1500) return 'now'
  const [unit, length] = steps.find(([, size]) => Math.abs(difference) >= size) ?? ['second', 1000]
  return words.format(Math.trunc(difference / length), unit)
}

/** The exact time in the reader's own way and zone, for titles. */
export const exact = (at: number): string => full.format(at)

/** `14:03:09`, and the day before it where that is not today. */
export function clockTime(at: number, now: number): string {
  const time = withinDay.format(at)
  return sameDay(at, now) ? time : `${day.format(at)}, ${time}`
}

const sameDay = (a: number, b: number): boolean => new Date(a).toDateString() === new Date(b).toDateString()

/** What `<input type="datetime-local">` holds for a time: local, without a zone. */
export function localInput(at: number): string {
  const date = new Date(at)
  const two = (number: number) => String(number).padStart(2, '0')
  const dayPart = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${dayPart}T${two(date.getHours())}:${two(date.getMinutes())}`
}

/** The time that such an input holds, or nothing where it is empty or half typed. */
export function fromLocalInput(text: string): number | undefined {
  const at = new Date(text).getTime()
  return text === '' || Number.isNaN(at) ? undefined : at
}
