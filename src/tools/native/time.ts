import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments } from '../../core/errors.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import {
  addDuration,
  describeDifference,
  durationFrom,
  type Moment,
  momentFrom,
  utcOf,
  wallAt,
  type Zone,
  zoneNamed,
} from './time/moment.ts'

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const monthNames = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July'],
  ...['August', 'September', 'October', 'November', 'December'],
]

const namedFormats: Readonly<Record<string, (moment: Moment) => string>> = {
  iso: (moment) => isoText(moment),
  unix: ({ instant }) => String(Math.floor(instant / 1000)),
  unix_ms: ({ instant }) => String(instant),
  date: (moment) => fillPattern('yyyy-MM-dd', moment),
  time: (moment) => fillPattern('HH:mm:ss', moment),
  datetime: (moment) => fillPattern('yyyy-MM-dd HH:mm:ss', moment),
  rfc2822: (moment) => fillPattern('%a, %d %b %Y %H:%M:%S %z', moment),
  long: (moment) => fillPattern('EEEE, d MMMM yyyy, HH:mm:ss z', moment),
}

const formatNames = Object.keys(namedFormats)

const two = (number: number) => String(number).padStart(2, '0')

/** The fields of patterns like `yyyy-MM-dd`, and those of patterns like `%Y-%m-%d` that have no counterpart. */
function patternFields(moment: Moment): Readonly<Record<string, string>> {
  const { instant, zone } = moment
  const { year, month, day, hour, minute, second, millisecond } = wallAt(instant, zone)
  const yyyy = String(year).padStart(4, '0')
  const monthName = monthNames[month - 1] as string
  const weekday = weekdayOf(moment)
  const time = `${two(hour)}:${two(minute)}:${two(second)}`
  const milliseconds = String(millisecond).padStart(3, '0')
  const offset = offsetText(moment)
  return {
    ...{ yyyy, yy: two(year % 100) },
    ...{ MMMM: monthName, MMM: monthName.slice(0, 3), MM: two(month), M: `${month}` },
    ...{ EEEE: weekday, EEE: weekday.slice(0, 3), dd: two(day), d: `${day}`, '%e': `${day}`.padStart(2) },
    ...{ HH: two(hour), H: `${hour}`, hh: two(hour % 12 || 12), h: `${hour % 12 || 12}`, a: hour < 12 ? 'AM' : 'PM' },
    ...{ mm: two(minute), m: `${minute}`, ss: two(second), s: `${second}` },
    ...{ SSS: milliseconds, '%f': `${milliseconds}000` },
    ...{ XXX: offset, '%z': offset.replace(':', ''), z: zone.name },
    ...{ '%F': `${yyyy}-${two(month)}-${two(day)}`, '%T': time, '%s': `${Math.floor(instant / 1000)}` },
    ...{ T: 'T', '%%': '%' },
  }
}

/** Other names for the same fields, so that models need not guess. */
const fieldAliases: Readonly<Record<string, string>> = {
  ...{ YYYY: 'yyyy', YY: 'yy', DD: 'dd', D: 'd', dddd: 'EEEE', ddd: 'EEE', A: 'a', Z: 'XXX' },
  ...{ '%Y': 'yyyy', '%y': 'yy', '%B': 'MMMM', '%b': 'MMM', '%m': 'MM', '%A': 'EEEE', '%a': 'EEE', '%d': 'dd' },
  ...{ '%H': 'HH', '%I': 'hh', '%p': 'a', '%M': 'mm', '%S': 'ss', '%L': 'SSS', '%Z': 'z' },
}

const formatMoment = (format: string, moment: Moment): string =>
  Object.hasOwn(namedFormats, format) ? namedFormats[format]!(moment) : fillPattern(format, moment)

const weekdayOf = ({ instant, zone }: Moment): string =>
  weekdays[new Date(utcOf(wallAt(instant, zone))).getUTCDay()] as string

/** ISO 8601 such as `2026-11-15T10:30:00+01:00`, with `Z` for UTC, and with milliseconds only if they are not zero. */
const isoText = (moment: Moment): string =>
  fillPattern(moment.instant % 1000 === 0 ? 'yyyy-MM-ddTHH:mm:ss' : 'yyyy-MM-ddTHH:mm:ss.SSS', moment) +
  (moment.zone.name === 'UTC' ? 'Z' : offsetText(moment))

function offsetText({ instant, zone }: Moment): string {
  const minutes = zone.offsetAt(instant)
  const distance = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(distance / 60))}:${two(distance % 60)}`
}

function fillPattern(pattern: string, moment: Moment): string {
  const fields = patternFields(moment)
  const field = (spelling: string): string => {
    const found = fields[Object.hasOwn(fieldAliases, spelling) ? fieldAliases[spelling]! : spelling]
    if (typeof found === 'string') return found
    const patterns =
      'or a pattern such as "yyyy-MM-dd HH:mm" or "%Y-%m-%d %H:%M". Put literal words in \'single quotes\'.'
    throw invalidArguments(`"${spelling}" in "format" is unknown; use ${formatNames.join(', ')}, ${patterns}`)
  }
  if (pattern.includes('%')) return pattern.replace(/%.?/gs, field)
  // Quoted text ('…' or […]) is literal, a repeated letter is a field, and everything else is copied.
  return pattern.replace(/'([^']*)'|\[([^\]]*)\]|([A-Za-z])\3*/g, (run, quoted?: string, bracketed?: string) =>
    quoted === '' ? "'" : (quoted ?? bracketed ?? field(run)),
  )
}

const point = z.union([z.string().max(200), z.number()])

const timeInput = z.object({
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

type TimeArguments = z.output<typeof timeInput>
type Field = Exclude<keyof TimeArguments, 'name'>

interface TimeOperation {
  readonly needs: readonly Field[]
  readonly takes: readonly Field[]
  run(args: TimeArguments, now: number): TimeAnswer
}

const timeOutput = z.object({
  result: z.string().describe('The complete result as text.'),
  utc: z.string().optional(),
  unix: z.number().optional(),
  timezone: z.string().optional(),
  offset: z.string().optional(),
  weekday: z.string().optional(),
  seconds: z.number().optional(),
  duration: z.string().optional(),
})
type TimeAnswer = z.output<typeof timeOutput>

/** UTC without `Intl`, so that the engine's time zone data is loaded only when a caller names a zone. */
const utc: Zone = { name: 'UTC', offsetAt: () => 0 }

const timeOperations: Readonly<Record<TimeArguments['name'], TimeOperation>> = {
  get_time_utc: {
    needs: [],
    takes: ['format'],
    run: ({ format }, now) => timeAnswer({ instant: now, zone: utc }, format),
  },
  get_time_local: {
    needs: [],
    takes: ['timezone', 'format'],
    run: ({ timezone, format }, now) => timeAnswer({ instant: now, zone: zoneNamed(timezone) }, format),
  },
  parse_time: {
    needs: ['value'],
    takes: ['timezone'],
    run: ({ value, timezone }, now) => timeAnswer(readTime(value, timezone, now)),
  },
  format_time: {
    needs: ['value'],
    takes: ['format', 'timezone'],
    run: ({ value, format, timezone }, now) => timeAnswer(readTime(value, timezone, now), format),
  },
  convert_timezone: {
    needs: ['to'],
    takes: ['value', 'from', 'format'],
    run({ value = 'now', from, to, format }, now) {
      const source = from === undefined ? utc : zoneNamed(String(from))
      return timeAnswer({ ...momentFrom(value, source, now), zone: zoneNamed(String(to)) }, format)
    },
  },
  time_difference: {
    needs: ['from'],
    takes: ['to', 'timezone'],
    run({ from, to = 'now', timezone }, now) {
      const milliseconds = readTime(to, timezone, now).instant - readTime(from, timezone, now).instant
      const { text, duration } = describeDifference(milliseconds)
      return { result: text, seconds: milliseconds / 1000, duration }
    },
  },
  add_time: {
    needs: ['duration'],
    takes: ['value', 'timezone', 'format'],
    run: ({ value = 'now', duration = '', timezone, format }, now) =>
      timeAnswer(addDuration(readTime(value, timezone, now), durationFrom(duration)), format),
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
    input: timeInput,
    output: timeOutput,
    readOnly: true,
    run(given) {
      const { value, time_string, ...others } = given
      const args = value === undefined ? { value: time_string, ...others } : given
      const operation = timeOperations[args.name]
      checkFields(args, operation)
      return operation.run(args, clock.now())
    },
  })

/** Checks which fields are given. The schema cannot do this, because all operations share it. */
function checkFields(args: TimeArguments, { needs, takes }: TimeOperation) {
  const missing = needs.find((field) => args[field] === undefined)
  if (missing) throw invalidArguments(`${args.name} needs "${missing}".`)
  const usable: readonly string[] = ['name', ...needs, ...takes]
  const extra = Object.keys(args).find((field) => args[field as Field] !== undefined && !usable.includes(field))
  if (!extra) return
  throw invalidArguments(`${args.name} does not accept "${extra}"; it takes ${usable.slice(1).join(', ')}.`)
}

/** Reads a time. A value with its own offset keeps that offset, unless `timezone` is given. */
function readTime(value: string | number | undefined, timezone: string | undefined, now: number): Moment {
  const zone: Zone = timezone === undefined ? utc : zoneNamed(timezone)
  const moment = momentFrom(value ?? 'now', zone, now)
  return timezone === undefined ? moment : { ...moment, zone }
}

const timeAnswer = (moment: Moment, format?: string): TimeAnswer => ({
  result: format === undefined ? isoText(moment) : formatMoment(format, moment),
  utc: isoText({ ...moment, zone: utc }),
  unix: moment.instant / 1000,
  timezone: moment.zone.name,
  offset: offsetText(moment),
  weekday: weekdayOf(moment),
})
