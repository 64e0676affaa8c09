import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments } from '../../core/errors.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { formatNames, formatted, isoText, offsetText, weekdayOf } from './time/format.ts'
import { describeDifference, durationFrom, later, type Moment, momentFrom } from './time/moment.ts'
import { type Zone, zoneNamed } from './time/zone.ts'

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
