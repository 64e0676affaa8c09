import { ToolwayError } from '../../../core/errors.ts'
import { checked, type Moment } from './parse.ts'
import { instantOf, utcOf, wallAt, wallInUtc } from './zone.ts'

/** Months and days follow the calendar and the local clock; the rest is exact. */
interface Duration {
  readonly months: number
  readonly days: number
  readonly milliseconds: number
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const units: readonly (readonly [RegExp, Partial<Duration>])[] = [
  [/^(y|yr|yrs|years?)$/, { months: 12 }],
  [/^(mo|mon|months?)$/, { months: 1 }],
  [/^(w|wk|wks|weeks?)$/, { days: 7 }],
  [/^(d|days?)$/, { days: 1 }],
  [/^(h|hr|hrs|hours?)$/, { milliseconds: hour }],
  [/^(m|min|mins|minutes?)$/, { milliseconds: minute }],
  [/^(s|sec|secs|seconds?)$/, { milliseconds: second }],
  [/^(ms|milliseconds?)$/, { milliseconds: 1 }],
]

/** Reads `P1DT2H`, `90m`, `2 hours 30 minutes`, each with an optional sign in front. */
export function durationFrom(text: string): Duration {
  const unsigned = text.trim().replace(/^[+-]/, '').trim().toLowerCase()
  const parts = unsigned.startsWith('p') ? isoParts(unsigned) : wordParts(unsigned)
  if (!parts || parts.length === 0) {
    throw new ToolwayError(
      'INVALID_ARGUMENTS',
      `"${text.slice(0, 60)}" is not a duration; write it as "P1DT2H30M", "90m" or "2 hours 30 minutes".`,
    )
  }
  const sign = text.trim().startsWith('-') ? -1 : 1
  const total = (unit: keyof Duration) =>
    sign * parts.reduce((sum, [count, size]) => sum + count * (size[unit] ?? 0), 0)
  const duration = { months: total('months'), days: total('days'), milliseconds: Math.round(total('milliseconds')) }
  if (Number.isInteger(duration.months) && Number.isInteger(duration.days)) return duration
  throw new ToolwayError('INVALID_ARGUMENTS', `"${text.slice(0, 60)}" has part of a day in it; give the hours instead.`)
}

type Part = readonly [count: number, size: Partial<Duration>]

function isoParts(text: string): Part[] | undefined {
  const number = String.raw`(\d{1,9}(?:[.,]\d{1,9})?)`
  const form = `^p(?:${number}y)?(?:${number}m)?(?:${number}w)?(?:${number}d)?(?:t(?:${number}h)?(?:${number}m)?(?:${number}s)?)?$`
  const counts = new RegExp(form).exec(text)?.slice(1)
  return counts?.flatMap((count, index) =>
    count === undefined ? [] : [[Number(count.replace(',', '.')), units[index]![1]] as const],
  )
}

function wordParts(text: string): Part[] | undefined {
  if (text.length > 100) return undefined
  const parts: Part[] = []
  const rest = text.replace(/(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)/g, (whole, count: string, word: string) => {
    const size = units.find(([spelling]) => spelling.test(word))?.[1]
    if (!size) return whole
    parts.push([Number(count), size])
    return ''
  })
  return rest.replace(/\band\b|[\s,]/g, '') === '' ? parts : undefined
}

/** A month later is the same day of the next month, or its last one; a day later is the same time of day. */
export function later(moment: Moment, { months, days, milliseconds }: Duration): Moment {
  const { instant, zone } = moment
  if (months === 0 && days === 0) return checked({ instant: instant + milliseconds, zone })
  const wall = wallAt(instant, zone)
  const lastDay = new Date(utcOf({ ...wall, month: wall.month + months + 1, day: 0 })).getUTCDate()
  const target = utcOf({ ...wall, month: wall.month + months, day: Math.min(wall.day, lastDay) + days })
  const local = wallInUtc(checked({ instant: target, zone }).instant)
  return checked({ instant: instantOf(local, zone) + milliseconds, zone })
}

/** Whole days, hours, minutes and seconds between two instants, for programs (`-P2DT3H`) and for people. */
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
    .map(([unit, count]) => `${count} ${unit}${count === 1 ? '' : 's'}`)
  const timeOfDay = [
    counts.hour && `${counts.hour}H`,
    counts.minute && `${counts.minute}M`,
    counts.second && `${counts.second}S`,
  ]
  const time = timeOfDay.filter(Boolean).join('')
  const iso = `P${counts.day ? `${counts.day}D` : ''}${time && `T${time}`}`
  const sign = milliseconds < 0
  return {
    duration: distance === 0 ? 'PT0S' : `${sign ? '-' : ''}${iso}`,
    text: distance === 0 ? 'no time at all' : `${words.join(' ')}${sign ? ' earlier' : ' later'}`,
  }
}
