import { invalidArguments } from '../../../core/errors.ts'
import type { Moment } from './moment.ts'
import { utcOf, type Wall, wallAt } from './zone.ts'

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const months = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
]

const named: Readonly<Record<string, (moment: Moment) => string>> = {
  iso: (moment) => isoText(moment),
  unix: ({ instant }) => String(Math.floor(instant / 1000)),
  unix_ms: ({ instant }) => String(instant),
  date: (moment) => fill('yyyy-MM-dd', moment),
  time: (moment) => fill('HH:mm:ss', moment),
  datetime: (moment) => fill('yyyy-MM-dd HH:mm:ss', moment),
  rfc2822: (moment) => fill('%a, %d %b %Y %H:%M:%S %z', moment),
  long: (moment) => fill('EEEE, d MMMM yyyy, HH:mm:ss z', moment),
}

export const formatNames = Object.keys(named)

interface Shown extends Wall {
  readonly moment: Moment
  readonly weekday: string
}

const two = (number: number) => String(number).padStart(2, '0')
const month = ({ month }: Shown) => months[month - 1] as string
const twelve = ({ hour }: Shown) => hour % 12 || 12

const fields = {
  year: ({ year }: Shown) => String(year).padStart(4, '0'),
  shortYear: ({ year }: Shown) => two(year % 100),
  month,
  shortMonth: (shown: Shown) => month(shown).slice(0, 3),
  weekday: ({ weekday }: Shown) => weekday,
  shortWeekday: ({ weekday }: Shown) => weekday.slice(0, 3),
  half: ({ hour }: Shown) => (hour < 12 ? 'AM' : 'PM'),
  millisecond: ({ millisecond }: Shown) => String(millisecond).padStart(3, '0'),
  offset: ({ moment }: Shown) => offsetText(moment),
  zone: ({ moment }: Shown) => moment.zone.name,
}

/** The fields of patterns like `yyyy-MM-dd`. Patterns like `%Y-%m-%d` work too, so that models need not guess. */
const letters: Readonly<Record<string, (shown: Shown) => string>> = {
  ...{ yyyy: fields.year, YYYY: fields.year, yy: fields.shortYear, YY: fields.shortYear },
  ...{ MMMM: fields.month, MMM: fields.shortMonth, MM: ({ month }) => two(month), M: ({ month }) => String(month) },
  ...{ dd: ({ day }) => two(day), DD: ({ day }) => two(day), d: ({ day }) => String(day), D: ({ day }) => String(day) },
  ...{ EEEE: fields.weekday, dddd: fields.weekday, EEE: fields.shortWeekday, ddd: fields.shortWeekday },
  ...{ HH: ({ hour }) => two(hour), H: ({ hour }) => String(hour), hh: (shown) => two(twelve(shown)) },
  ...{ h: (shown) => String(twelve(shown)), mm: ({ minute }) => two(minute), m: ({ minute }) => String(minute) },
  ...{ ss: ({ second }) => two(second), s: ({ second }) => String(second), SSS: fields.millisecond },
  ...{ a: fields.half, A: fields.half, XXX: fields.offset, Z: fields.offset, z: fields.zone, T: () => 'T' },
}

const percents: Readonly<Record<string, (shown: Shown) => string>> = {
  ...{ Y: fields.year, y: fields.shortYear, m: ({ month }) => two(month), d: ({ day }) => two(day) },
  ...{ e: ({ day }) => String(day).padStart(2), B: fields.month, b: fields.shortMonth, A: fields.weekday },
  ...{ a: fields.shortWeekday, H: ({ hour }) => two(hour), I: (shown) => two(twelve(shown)), p: fields.half },
  ...{ M: ({ minute }) => two(minute), S: ({ second }) => two(second), L: fields.millisecond },
  ...{ f: (shown) => `${fields.millisecond(shown)}000`, z: (shown) => fields.offset(shown).replace(':', '') },
  ...{ Z: fields.zone, s: ({ moment }) => String(Math.floor(moment.instant / 1000)), '%': () => '%' },
  ...{ F: ({ moment }) => fill('yyyy-MM-dd', moment), T: ({ moment }) => fill('HH:mm:ss', moment) },
}

export const formatted = (format: string, moment: Moment): string =>
  Object.hasOwn(named, format) ? named[format]!(moment) : fill(format, moment)

export const weekdayOf = ({ instant, zone }: Moment): string =>
  weekdays[new Date(utcOf(wallAt(instant, zone))).getUTCDay()] as string

/** ISO 8601 such as `2026-11-15T10:30:00+01:00`, with `Z` for UTC, and with milliseconds only if they are not zero. */
export const isoText = (moment: Moment): string =>
  fill(moment.instant % 1000 === 0 ? 'yyyy-MM-ddTHH:mm:ss' : 'yyyy-MM-ddTHH:mm:ss.SSS', moment) +
  (moment.zone.name === 'UTC' ? 'Z' : offsetText(moment))

export function offsetText({ instant, zone }: Moment): string {
  const minutes = zone.offsetAt(instant)
  const distance = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(distance / 60))}:${two(distance % 60)}`
}

function fill(pattern: string, moment: Moment): string {
  const shown: Shown = { ...wallAt(moment.instant, moment.zone), moment, weekday: weekdayOf(moment) }
  if (pattern.includes('%')) {
    return pattern.replace(/%(.?)/gs, (_, letter: string) => field(percents, letter, `%${letter}`)(shown))
  }
  // Quoted text ('…' or […]) is literal, a repeated letter is a field, and everything else is copied.
  return pattern.replace(/'([^']*)'|\[([^\]]*)\]|([A-Za-z])\3*/g, (run, quoted?: string, bracketed?: string) =>
    quoted === '' ? "'" : (quoted ?? bracketed ?? field(letters, run, run)(shown)),
  )
}

function field(known: typeof letters, name: string, spelling: string): (shown: Shown) => string {
  if (Object.hasOwn(known, name)) return known[name]!
  const patterns =
    'or a pattern such as "yyyy-MM-dd HH:mm" or "%Y-%m-%d %H:%M". Put literal words in \'single quotes\'.'
  throw invalidArguments(`"${spelling}" in "format" is unknown; use ${formatNames.join(', ')}, ${patterns}`)
}
