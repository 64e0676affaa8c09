import { describe, expect, test } from 'vitest'
import { formatDuration, formatLongDuration, formatTimeLeft } from './duration.ts'
import {
  formatBudget,
  formatCount,
  formatExactCount,
  formatProgress,
  formatRate,
  formatRatio,
  formatShare,
  pluralize,
} from './number.ts'
import { showDirections } from './show-directions.ts'
import { formatClockTime, formatDateTime, formatRelativeTime, fromLocalInput, toLocalInput } from './time.ts'

test('G10: direction controls in foreign text are spelt out, other invisible characters are kept', () => {
  expect(showDirections('a \u202egnp.exe\u202c \u2067b\u2069')).toBe('a \\u{202e}gnp.exe\\u{202c} \\u{2067}b\\u{2069}')
  const honest = '👩\u200d💻 می\u200cخواهم \u200fעברית'
  expect(showDirections(honest)).toBe(honest)
  expect(formatProgress({ progress: 1, total: 2, message: '\u202edone' })).toBe('1 of 2 \\u{202e}done')
})

describe('G10: numbers', () => {
  test('counts have thousands separators, large ones are compact', () => {
    expect([0, 7, 9412, 99_999].map(formatCount)).toEqual(['0', '7', '9,412', '99,999'])
    expect([123_456, 4_200_000].map(formatCount)).toEqual(['123K', '4.2M'])
  })

  test('budgets of memory are in bytes, others are counts', () => {
    const bytes = ['request_bytes', 'capture', 'history_shared'].map((name) => formatBudget(name, 64 * 1024 * 1024))
    expect(bytes).toEqual(['64 MiB', '64 MiB', '64 MiB'])
    expect(['calls', 'history_calls'].map((name) => formatBudget(name, 4_000))).toEqual(['4,000', '4,000'])
  })

  test('small rates have two significant digits', () => {
    expect([0, 0.0234, 8.31, 41.2, 1534].map(formatRate)).toEqual(['0', '0.023', '8.3', '41', '1,534'])
  })

  test('a share of zero has no value', () => {
    expect(formatShare(1, 0)).toBe('–')
    expect(formatShare(1, 8)).toBe('12.5%')
    expect(formatRatio(null)).toBe('–')
    expect(formatRatio(0.934)).toBe('93.4%')
  })

  test('nouns are singular or plural', () => {
    expect(pluralize(1, 'server')).toBe('1 server')
    expect(pluralize(0, 'server')).toBe('0 servers')
    expect(pluralize(2, 'entry', 'entries')).toBe('2 entries')
  })
})

test('G10: a figure that is not loaded yet is a placeholder, not zero', () => {
  const formats = [formatCount, formatExactCount, formatRate, formatRatio, formatDuration]
  expect([...formats.map((format) => format(undefined)), formatShare(undefined, undefined)]).toEqual(Array(6).fill('…'))
  expect(pluralize(undefined, 'server')).toBe('… servers')
})

describe('G10: durations', () => {
  test('short durations use the matching unit', () => {
    expect([null, 0.042, 4.23, 42.4, 999, 999.7, 1250, 59_994].map(formatDuration)).toEqual([
      '–',
      '0.04 ms',
      '4.2 ms',
      '42 ms',
      '999 ms',
      '1 s',
      '1.25 s',
      '59.99 s',
    ])
    expect(formatDuration(125_000)).toBe('2 min 5 s')
  })

  test('long durations have at most two units, none of them zero', () => {
    expect([-5, 0, 61_000, 3_600_000, 273_600_000].map(formatLongDuration)).toEqual([
      '0 s',
      '0 s',
      '1 min 1 s',
      '1 h',
      '3 d 4 h',
    ])
    expect(formatLongDuration(59_999)).toBe('1 min')
  })

  test('V8: the time that is left is never longer than the whole period', () => {
    const period = { from: 10_000, until: 310_000 }
    expect([9_200, 10_000, 70_000, 400_000].map((now) => formatTimeLeft(period, now))).toEqual([
      '5 min left',
      '5 min left',
      '4 min left',
      '0 s left',
    ])
  })
})

describe('G10: times', () => {
  const now = Date.UTC(2026, 2, 1, 12)

  test('relative times can be past or future', () => {
    expect(formatRelativeTime(now - 400, now)).toBe('now')
    expect(formatRelativeTime(now - 12_000, now)).toBe('12s ago')
    expect(formatRelativeTime(now - 3 * 86_400_000, now)).toBe('3d ago')
    expect(formatRelativeTime(now + 7_200_000, now)).toBe('in 2h')
    expect(formatRelativeTime(now - 60_000 * 119, now)).toBe('1h ago')
  })

  test('a key that was created a minute ago expires after its whole lifetime', () => {
    const left = (days: number) => formatRelativeTime(now + days * 86_400_000 - 60_000, now)
    expect([1, 7, 30, 90, 365].map(left)).toEqual(['in 24h', 'in 7d', 'in 30d', 'in 90d', 'in 12mo'])
  })

  test('a time on another day includes the date', () => {
    expect(formatClockTime(now, now)).toMatch(/^\d\d:\d\d:\d\d$/)
    expect(formatClockTime(now - 2 * 86_400_000, now)).toMatch(/27.*\d\d:\d\d:\d\d$/)
    expect(formatDateTime(now)).toContain('2026')
  })

  test('local times survive a round trip through an input, to the minute', () => {
    expect(fromLocalInput(toLocalInput(now))).toBe(now)
    expect(fromLocalInput('')).toBeUndefined()
    expect(fromLocalInput('2026-13')).toBeUndefined()
  })
})

test('G10: progress is shown without the tiny numbers of a call that waits', () => {
  expect(formatProgress({ progress: 2, total: 4, message: 'Reading' })).toBe('2 of 4 Reading')
  expect(formatProgress({ progress: 0.5, total: 1, message: null })).toBe('0.5 of 1')
  expect(formatProgress({ progress: 3, total: null, message: null })).toBe('3')
  const message = 'Waiting for a person to approve probe.echo (1 s).'
  expect(formatProgress({ progress: 0.000001002, total: null, message })).toBe(message)
})
