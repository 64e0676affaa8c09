import { invalidArguments } from '../../../core/errors.ts'
import { nearMisses } from '../../../lib/similar-text.ts'

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

const offsets = new Map<string, Zone['offsetAt']>()

/** The zone for an IANA name (ignoring case, with spaces or underscores) or an offset; by default, the local zone. */
export function zoneNamed(given: string | undefined): Zone {
  const spelling = given?.trim().replace(/ /g, '_')
  const canonical = canonicalName(spelling)
  let offsetAt = offsets.get(canonical)
  if (!offsetAt) {
    offsetAt = offsetsOf(canonical)
    offsets.set(canonical, offsetAt)
  }
  // Keep the caller's spelling: the canonical name of "EST" is "America/Panama", which is correct but surprising.
  const same = spelling === undefined || spelling.toLowerCase() === canonical.toLowerCase()
  return { name: same ? canonical : spelling, offsetAt }
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

function offsetsOf(timeZone: string): Zone['offsetAt'] {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (instant) => {
    const name = format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours, minutes, seconds = 0] = /([+-])(\d{2}):(\d{2})(?::(\d{2}))?/.exec(name) ?? []
    if (sign === undefined) return 0
    // Historical offsets include seconds. Round them, because offsets are written in minutes.
    const distance = Math.round(Number(hours) * 60 + Number(minutes) + Number(seconds) / 60)
    return sign === '-' ? -distance : distance
  }
}

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
  const day = 86_400_000
  const utc = utcOf(wall)
  const before = zone.offsetAt(utc - day)
  const after = zone.offsetAt(utc + day)
  const fitting = [before, after].map((offset) => ({ offset, instant: utc - offset * 60_000 }))
  const real = fitting.filter(({ offset, instant }) => zone.offsetAt(instant) === offset)
  return real.length > 0 ? Math.min(...real.map(({ instant }) => instant)) : utc - before * 60_000
}
