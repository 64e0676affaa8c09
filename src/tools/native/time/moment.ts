import { invalidArguments } from '../../../core/errors.ts'
import { durationUnits } from '../../../lib/duration.ts'
import { memoize } from '../../../lib/memoize.ts'
import { pluralize } from '../../../lib/message-text.ts'
import { nearMisses } from '../../../lib/similar-text.ts'

/** An instant, and the zone in which it was written. */
export interface Moment {
  readonly instant: number
  readonly zone: Zone
}

const earliest = Date.parse('0001-01-02T00:00:00Z')
const latestInstant = Date.parse('9999-12-30T00:00:00Z')

const clockTime = String.raw`(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:[.,](?<fraction>\d{1,9}))?)?`
const offset = String.raw`\s*(?<offset>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?`
const zonePattern = String.raw`\s*(?:\[(?<zone>[^\]]+)\])?`

const monthAbbreviations = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** ISO 8601 (RFC 3339, RFC 9557), its basic form and its time of day, and RFC 2822. */
const forms = [
  String.raw`(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})(?:[T ]\s*${clockTime}${offset}${zonePattern})?`,
  String.raw`(?<year>\d{4})(?<month>\d{2})(?<day>\d{2})(?:T(?<hour>\d{2})(?<minute>\d{2})(?<second>\d{2})?${offset})?`,
  String.raw`(?:[a-z]{3},\s*)?(?<day>\d{1,2})\s+(?<month>${monthAbbreviations.join('|')})\s+(?<year>\d{4})\s+${clockTime}${offset}`,
  clockTime + offset + zonePattern,
].map((form) => new RegExp(`^${form}$`, 'i'))

/** Parses a time. `zone` applies if the value has no offset. */
export function momentFrom(value: string | number, zone: Zone, now: number): Moment {
  const text = String(value).trim()
  if (text.toLowerCase() === 'now') return { instant: now, zone }
  const moment = fromNumber(text, zone) ?? fromForms(text, zone, now)
  if (moment) return checkYear(moment)
  const examples = '"2026-11-15T10:30:00+01:00", "2026-11-15" or "10:30", RFC 2822 such as "15 Nov 2026 10:30:00 +0100"'
  const sentence = `write it as ISO 8601 such as ${examples}, seconds or milliseconds since 1970, or "now".`
  throw invalidArguments(`"${text.slice(0, 60)}" is not a recognized time; ${sentence}`)
}

/** Rejects times outside the years 1 to 9999, for which calendars and clients disagree. */
function checkYear(moment: Moment): Moment {
  if (moment.instant >= earliest && moment.instant <= latestInstant) return moment
  throw invalidArguments('The time is outside the years 1 to 9999.')
}

/**
 * Parses a Unix time: in seconds, or in milliseconds if the number, taken as seconds, would be thousands of years away.
 * A number with eight digits is a date and is not parsed here.
 */
function fromNumber(text: string, zone: Zone): Moment | undefined {
  if (!/^-?\d{1,15}(\.\d{1,9})?$/.test(text) || /^\d{8}$/.test(text)) return undefined
  const number = Number(text)
  return { instant: Math.round(Math.abs(number) < 1e11 ? number * 1000 : number), zone }
}

function fromForms(text: string, zone: Zone, now: number): Moment | undefined {
  if (text.length > 100) return undefined
  const parts = forms.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined)
  if (!parts) return undefined
  const own = parts.offset === undefined ? parts.zone : offsetName(parts.offset)
  const where = own === undefined ? zone : zoneNamed(own)
  const today = wallAt(now, where)
  const wall: Wall = {
    year: parts.year === undefined ? today.year : Number(parts.year),
    month: parts.month === undefined ? today.month : monthNumber(parts.month),
    day: parts.day === undefined ? today.day : Number(parts.day),
    hour: Number(parts.hour ?? 0),
    minute: Number(parts.minute ?? 0),
    second: Number(parts.second ?? 0),
    millisecond: Number((parts.fraction ?? '').padEnd(3, '0').slice(0, 3)),
  }
  checkWall(wall, text)
  return { instant: instantOf(wall, where), zone: where }
}

const offsetName = (written: string) =>
  /^[a-z]/i.test(written) ? 'UTC' : `${written.slice(0, 3)}:${written.slice(3).replace(':', '') || '00'}`

const monthNumber = (written: string): number =>
  monthAbbreviations.indexOf(written.toLowerCase()) + 1 || Number(written)

function checkWall(wall: Wall, text: string) {
  const { year, month, day, hour, minute, second } = wall
  const there = new Date(utcOf(wall))
  const isDate = month >= 1 && month <= 12 && there.getUTCFullYear() === year && there.getUTCMonth() + 1 === month
  if (!isDate || day < 1) throw invalidArguments(`"${text}" is not a valid date.`)
  if (hour > 23 || minute > 59 || second > 59)
    throw invalidArguments(`"${text}" is not a valid time of day: hours go up to 23, minutes and seconds up to 59.`)
}

/** A duration. Months and days follow the calendar and the local clock; milliseconds are exact. */
interface Duration {
  readonly months: number
  readonly days: number
  readonly milliseconds: number
}

const { s: second, m: minute, h: hour, d: day } = durationUnits

const durationWords: readonly (readonly [RegExp, Partial<Duration>])[] = [
  [/^(y|yr|yrs|years?)$/, { months: 12 }],
  [/^(mo|mon|months?)$/, { months: 1 }],
  [/^(w|wk|wks|weeks?)$/, { days: 7 }],
  [/^(d|days?)$/, { days: 1 }],
  [/^(h|hr|hrs|hours?)$/, { milliseconds: hour }],
  [/^(m|min|mins|minutes?)$/, { milliseconds: minute }],
  [/^(s|sec|secs|seconds?)$/, { milliseconds: second }],
  [/^(ms|milliseconds?)$/, { milliseconds: 1 }],
]

/** Parses a duration such as `P1DT2H`, `90m` or `2 hours 30 minutes`, with an optional sign. */
export function durationFrom(text: string): Duration {
  const unsigned = text.trim().replace(/^[+-]/, '').trim().toLowerCase()
  const parts = unsigned.startsWith('p') ? isoParts(unsigned) : wordParts(unsigned)
  if (!parts || parts.length === 0)
    throw invalidArguments(
      `"${text.slice(0, 60)}" is not a duration; write it as "P1DT2H30M", "90m" or "2 hours 30 minutes".`,
    )
  const sign = text.trim().startsWith('-') ? -1 : 1
  const total = (unit: keyof Duration) =>
    sign * parts.reduce((sum, [count, size]) => sum + count * (size[unit] ?? 0), 0)
  const duration = { months: total('months'), days: total('days'), milliseconds: Math.round(total('milliseconds')) }
  if (Number.isInteger(duration.months) && Number.isInteger(duration.days)) return duration
  throw invalidArguments(`"${text.slice(0, 60)}" has a fraction of a day; use hours instead.`)
}

type DurationPart = readonly [count: number, size: Partial<Duration>]

function isoParts(text: string): DurationPart[] | undefined {
  const number = String.raw`(\d{1,9}(?:[.,]\d{1,9})?)`
  const form = `^p(?:${number}y)?(?:${number}m)?(?:${number}w)?(?:${number}d)?(?:t(?:${number}h)?(?:${number}m)?(?:${number}s)?)?$`
  const counts = new RegExp(form).exec(text)?.slice(1)
  return counts?.flatMap((count, index) =>
    count === undefined ? [] : [[Number(count.replace(',', '.')), durationWords[index]![1]] as const],
  )
}

function wordParts(text: string): DurationPart[] | undefined {
  if (text.length > 100) return undefined
  const parts: DurationPart[] = []
  const rest = text.replace(/(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)/g, (whole, count: string, word: string) => {
    const size = durationWords.find(([spelling]) => spelling.test(word))?.[1]
    if (!size) return whole
    parts.push([Number(count), size])
    return ''
  })
  return rest.replace(/\band\b|[\s,]/g, '') === '' ? parts : undefined
}

/** Adds a duration. Adding months keeps the day, or uses the last day of the month; adding days keeps the time. */
export function addDuration(moment: Moment, { months, days, milliseconds }: Duration): Moment {
  const { instant, zone } = moment
  if (months === 0 && days === 0) return checkYear({ instant: instant + milliseconds, zone })
  const wall = wallAt(instant, zone)
  const lastDay = new Date(utcOf({ ...wall, month: wall.month + months + 1, day: 0 })).getUTCDate()
  const target = utcOf({ ...wall, month: wall.month + months, day: Math.min(wall.day, lastDay) + days })
  const local = wallInUtc(checkYear({ instant: target, zone }).instant)
  return checkYear({ instant: instantOf(local, zone) + milliseconds, zone })
}

export function describeDifference(milliseconds: number): { duration: string; text: string } {
  const distance = Math.abs(milliseconds)
  const counts = {
    day: Math.floor(distance / day),
    hour: Math.floor((distance % day) / hour),
    minute: Math.floor((distance % hour) / minute),
    second: (distance % minute) / second,
  }
  const words = Object.entries(counts)
    .filter(([, count]) => count !== 0)
    .map(([unit, count]) => pluralize(count, unit))
  const part = (count: number, letter: string) => (count === 0 ? '' : `${count}${letter}`)
  const time = part(counts.hour, 'H') + part(counts.minute, 'M') + part(counts.second, 'S')
  const iso = `P${part(counts.day, 'D')}${time && `T${time}`}`
  const sign = milliseconds < 0
  return {
    duration: distance === 0 ? 'PT0S' : `${sign ? '-' : ''}${iso}`,
    text: distance === 0 ? 'no difference' : `${words.join(' ')}${sign ? ' earlier' : ' later'}`,
  }
}

/** A local date and time without a zone. Months count from 1. */
export interface Wall {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

export interface Zone {
  readonly name: string
  /** The offset from UTC in minutes; positive for zones east of UTC. */
  offsetAt(instant: number): number
}

/** The zone for an IANA name (ignoring case, with spaces or underscores) or an offset; by default, the local zone. */
export function zoneNamed(given: string | undefined): Zone {
  const spelling = given?.trim().replace(/ /g, '_')
  const canonical = canonicalName(spelling)
  // Keep the caller's spelling: the canonical name of "EST" is "America/Panama", which is correct but surprising.
  const same = spelling === undefined || spelling.toLowerCase() === canonical.toLowerCase()
  return { name: same ? canonical : spelling, offsetAt: offsetsOf(canonical) }
}

function canonicalName(spelling: string | undefined): string {
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: spelling })
    const found: string | undefined = format.resolvedOptions().timeZone
    // The local zone is unknown if TZ is empty or wrong. The system then uses UTC.
    return found === undefined || found === 'Etc/Unknown' ? 'UTC' : found
  } catch {
    const repeated = (spelling as string).slice(0, 60)
    throw invalidArguments(`"${repeated}" is not a time zone${suggestion(repeated)}`)
  }
}

function suggestion(spelling: string): string {
  const all = Intl.supportedValuesOf('timeZone')
  const place = (name: string) => name.slice(name.lastIndexOf('/') + 1)
  const wanted = place(spelling).toLowerCase()
  const here = all.filter((name) => place(name).toLowerCase() === wanted)
  const nearPlaces = nearMisses(wanted, all.map(place))
  const lists = [here, nearMisses(spelling, all), all.filter((name) => nearPlaces.includes(place(name)))]
  const near = lists.find((names) => names.length > 0)?.slice(0, 3)
  if (!near) return '; use an IANA name such as "Europe/Berlin", or an offset such as "+02:00".'
  return `; did you mean ${near.map((name) => `"${name}"`).join(' or ')}?`
}

const offsetsOf = memoize((timeZone): Zone['offsetAt'] => {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (instant) => {
    const name = format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours, minutes, seconds = 0] = /([+-])(\d{2}):(\d{2})(?::(\d{2}))?/.exec(name) ?? []
    if (sign === undefined) return 0
    // Historical offsets include seconds. Round them, because offsets are written in minutes.
    const distance = Math.round(Number(hours) * 60 + Number(minutes) + Number(seconds) / 60)
    return sign === '-' ? -distance : distance
  }
})

/** Interprets a local time as UTC and returns Unix time in milliseconds. Days and hours out of range carry over. */
export function utcOf({ year, month, day, hour, minute, second, millisecond }: Wall): number {
  // Do not use Date.UTC, which maps years 0–99 to 1900–1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second, millisecond)
  return date.getTime()
}

export function wallInUtc(instant: number): Wall {
  const date = new Date(instant)
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    millisecond: date.getUTCMilliseconds(),
  }
}

export const wallAt = (instant: number, zone: Zone): Wall => wallInUtc(instant + zone.offsetAt(instant) * 60_000)

/**
 * The instant at which a zone has a given local time. If clocks are set back and the time occurs twice, the result is
 * the first of the two; if clocks are set forward and the time is skipped, the result is later by the length of the gap.
 */
export function instantOf(wall: Wall, zone: Zone): number {
  const utc = utcOf(wall)
  const before = zone.offsetAt(utc - day)
  const after = zone.offsetAt(utc + day)
  const fitting = [before, after].map((offset) => ({ offset, instant: utc - offset * 60_000 }))
  const real = fitting.filter(({ offset, instant }) => zone.offsetAt(instant) === offset)
  return real.length > 0 ? Math.min(...real.map(({ instant }) => instant)) : utc - before * 60_000
}
