import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments } from '../../core/errors.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import {
  describeDifference,
  durationFrom,
  later,
  type Moment,
  momentFrom,
  utcOf,
  type Wall,
  wallAt,
  type Zone,
  zoneNamed,
} from './time/moment.ts'

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

const formatNames = Object.keys(named)

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

const formatted = (format: string, moment: Moment): string =>
  Object.hasOwn(named, format) ? named[format]!(moment) : fill(format, moment)

const weekdayOf = ({ instant, zone }: Moment): string =>
  weekdays[new Date(utcOf(wallAt(instant, zone))).getUTCDay()] as string

/** ISO 8601 such as `2026-11-15T10:30:00+01:00`, with `Z` for UTC, and with milliseconds only if they are not zero. */
const isoText = (moment: Moment): string =>
  fill(moment.instant % 1000 === 0 ? 'yyyy-MM-ddTHH:mm:ss' : 'yyyy-MM-ddTHH:mm:ss.SSS', moment) +
  (moment.zone.name === 'UTC' ? 'Z' : offsetText(moment))

function offsetText({ instant, zone }: Moment): string {
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

const point = z.union([z.string().max(200), z.number()])

const input = z.object({
  name: z.enum([
    ...(['get_time_utc', 'get_time_local', 'parse_time', 'format_time'] as const),
    ...(['convert_timezone', 'time_difference', 'add_time'] as const),
  ]),
  value: point
    .optional()
    .describe('A time: ISO 8601, "10:30" (today), RFC 2822, seconds or milliseconds since 1970, or "now".'),
  time_string: point.optional().describe('Another name for "value".'),
  timezone: z.string().max(100).optional().describe('IANA name such as Europe/Berlin, or an offset such as +02:00.'),
  format: z
    .string()
    .max(100)
    .optional()
    .describe(`${formatNames.join(', ')}, or a pattern such as "yyyy-MM-dd HH:mm" or "%Y-%m-%d %H:%M".`),
  from: point.optional().describe('convert_timezone: the zone of "value". time_difference: the first time.'),
  to: point
    .optional()
    .describe('convert_timezone: the zone to convert to. time_difference: the second time (default: now).'),
  duration: z
    .string()
    .max(100)
    .optional()
    .describe('add_time: the duration to add, such as "P1DT2H", "90m" or "-3 days".'),
})

type Arguments = z.output<typeof input>
type Field = Exclude<keyof Arguments, 'name'>

interface Operation {
  readonly needs: readonly Field[]
  readonly takes: readonly Field[]
  run(args: Arguments, now: number): Answer
}

const output = z.object({
  result: z.string().describe('The complete result as text.'),
  utc: z.string().optional(),
  unix: z.number().optional(),
  timezone: z.string().optional(),
  offset: z.string().optional(),
  weekday: z.string().optional(),
  seconds: z.number().optional(),
  duration: z.string().optional(),
})
type Answer = z.output<typeof output>

/** UTC without `Intl`, so that the engine's time zone data is loaded only when a caller names a zone. */
const utc: Zone = { name: 'UTC', offsetAt: () => 0 }

const operations: Readonly<Record<Arguments['name'], Operation>> = {
  get_time_utc: { needs: [], takes: ['format'], run: ({ format }, now) => shown({ instant: now, zone: utc }, format) },
  get_time_local: {
    needs: [],
    takes: ['timezone', 'format'],
    run: ({ timezone, format }, now) => shown({ instant: now, zone: zoneNamed(timezone) }, format),
  },
  parse_time: {
    needs: ['value'],
    takes: ['timezone'],
    run: ({ value, timezone }, now) => shown(read(value, timezone, now)),
  },
  format_time: {
    needs: ['value'],
    takes: ['format', 'timezone'],
    run: ({ value, format, timezone }, now) => shown(read(value, timezone, now), format),
  },
  convert_timezone: {
    needs: ['to'],
    takes: ['value', 'from', 'format'],
    run({ value = 'now', from, to, format }, now) {
      const source = from === undefined ? utc : zoneNamed(String(from))
      return shown({ ...momentFrom(value, source, now), zone: zoneNamed(String(to)) }, format)
    },
  },
  time_difference: {
    needs: ['from'],
    takes: ['to', 'timezone'],
    run({ from, to = 'now', timezone }, now) {
      const milliseconds = read(to, timezone, now).instant - read(from, timezone, now).instant
      const { text, duration } = describeDifference(milliseconds)
      return { result: text, seconds: milliseconds / 1000, duration }
    },
  },
  add_time: {
    needs: ['duration'],
    takes: ['value', 'timezone', 'format'],
    run: ({ value = 'now', duration = '', timezone, format }, now) =>
      shown(later(read(value, timezone, now), durationFrom(duration)), format),
  },
}

/** Calculates with times, dates and time zones exactly, which models often get wrong. */
export const timeTool = (clock: Clock): Tool =>
  defineTool({
    name: 'time',
    title: 'Time and time zones',
    description:
      'Returns the time and calculates with dates and time zones, including daylight saving time. "name" is one of: ' +
      'get_time_utc, get_time_local (timezone), parse_time (value, timezone), format_time (value, format, timezone), ' +
      'convert_timezone (value, from, to), time_difference (from, to), add_time (value, duration, timezone).',
    input,
    output,
    readOnly: true,
    run(given) {
      const { value, time_string, ...others } = given
      const args = value === undefined ? { value: time_string, ...others } : given
      const operation = operations[args.name]
      checkFields(args, operation)
      return operation.run(args, clock.now())
    },
  })

/** Checks which fields are given. The schema cannot do this, because all operations share it. */
function checkFields(args: Arguments, { needs, takes }: Operation) {
  const missing = needs.find((field) => args[field] === undefined)
  if (missing) throw invalidArguments(`${args.name} needs "${missing}".`)
  const usable: readonly string[] = ['name', ...needs, ...takes]
  const extra = Object.keys(args).find((field) => args[field as Field] !== undefined && !usable.includes(field))
  if (!extra) return
  throw invalidArguments(`${args.name} does not accept "${extra}"; it takes ${usable.slice(1).join(', ')}.`)
}

/** Reads a time. A value with its own offset keeps that offset, unless `timezone` is given. */
function read(value: string | number | undefined, timezone: string | undefined, now: number): Moment {
  const zone: Zone = timezone === undefined ? utc : zoneNamed(timezone)
  const moment = momentFrom(value ?? 'now', zone, now)
  return timezone === undefined ? moment : { ...moment, zone }
}

const shown = (moment: Moment, format?: string): Answer => ({
  result: format === undefined ? isoText(moment) : formatted(format, moment),
  utc: isoText({ ...moment, zone: utc }),
  unix: moment.instant / 1000,
  timezone: moment.zone.name,
  offset: offsetText(moment),
  weekday: weekdayOf(moment),
})
