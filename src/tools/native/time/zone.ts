import { ToolwayError } from '../../../core/errors.ts'
import { nearMisses } from '../../../lib/near.ts'

/** A wall clock's reading: the date and time of day somewhere, without the somewhere. Months count from 1. */
export interface Wall {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

/** A time zone that is known to exist. */
export interface Zone {
  readonly name: string
  /** Minutes east of Greenwich at that instant. */
  offsetAt(instant: number): number
}

const offsets = new Map<string, Zone['offsetAt']>()

/** Finds a zone by its IANA name (any case, blanks for underscores) or its offset (`+02:00`); no name: this machine's. */
export function zoneNamed(given: string | undefined): Zone {
  const spelling = given?.trim().replace(/ /g, '_')
  const canonical = canonicalName(spelling)
  let offsetAt = offsets.get(canonical)
  if (!offsetAt) {
    offsetAt = offsetsOf(canonical)
    offsets.set(canonical, offsetAt)
  }
  // The canonical name of "EST" is "America/Panama": right, but not what anyone wants to read.
  const same = spelling === undefined || spelling.toLowerCase() === canonical.toLowerCase()
  return { name: same ? canonical : spelling, offsetAt }
}

function canonicalName(spelling: string | undefined): string {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: spelling }).resolvedOptions().timeZone
  } catch {
    const repeated = (spelling as string).slice(0, 60)
    throw new ToolwayError('INVALID_ARGUMENTS', `"${repeated}" is not a time zone${suggestion(repeated)}`)
  }
}

function suggestion(spelling: string): string {
  const all = Intl.supportedValuesOf('timeZone')
  const place = (name: string) => name.slice(name.lastIndexOf('/') + 1)
  const wanted = place(spelling).toLowerCase()
  const here = all.filter((name) => place(name).toLowerCase() === wanted)
  const nearPlaces = nearMisses(wanted, all.map(place))
  const near = [here, nearMisses(spelling, all), all.filter((name) => nearPlaces.includes(place(name)))].find(
    (names) => names.length > 0,
  )
  if (!near) return '; use an IANA name such as "Europe/Berlin", or an offset such as "+02:00".'
  return `; did you mean ${near
    .slice(0, 3)
    .map((name) => `"${name}"`)
    .join(' or ')}?`
}

function offsetsOf(timeZone: string): Zone['offsetAt'] {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  return (instant) => {
    const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, value]))
    const wall = utcOf({
      year: part.era === 'BC' ? 1 - Number(part.year) : Number(part.year),
      month: Number(part.month),
      day: Number(part.day),
      hour: Number(part.hour),
      minute: Number(part.minute),
      second: Number(part.second),
      millisecond: 0,
    })
    // Before time zones, offsets had seconds; nobody writes them, so they are rounded away.
    return Math.round((wall - Math.floor(instant / 1000) * 1000) / 60_000)
  }
}

/** The instant at which a clock in Greenwich shows this; days and hours past their end carry over. */
export function utcOf({ year, month, day, hour, minute, second, millisecond }: Wall): number {
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second, millisecond)
  return date.getTime()
}

/** What a clock in Greenwich shows at an instant. */
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

/** What a clock in the zone shows at an instant. */
export const wallAt = (instant: number, zone: Zone): Wall => wallInUtc(instant + zone.offsetAt(instant) * 60_000)

/**
 * When a clock in the zone shows this. A reading that comes twice (clocks set back) means the first one;
 * one that never comes (clocks set forward) means as long after the jump as it was meant to be.
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
