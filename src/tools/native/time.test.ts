import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { refusalOf, runTool, structuredOf } from '../access.fixture.ts'
import { timeTool } from './time.ts'

const now = Date.UTC(2026, 10, 15, 3, 30, 5)
const time = timeTool(createManualClock(now))
const ask = async (name: string, args: object = {}) => structuredOf(await runTool(time, { name, ...args }))

test('S2: get_time_utc returns the time of the injected clock in every form', async () => {
  expect(await ask('get_time_utc')).toEqual({
    result: '2026-11-15T03:30:05Z',
    utc: '2026-11-15T03:30:05Z',
    unix: now / 1000,
    timezone: 'UTC',
    offset: '+00:00',
    weekday: 'Sunday',
  })
})

test('S2: get_time_local returns the time in a zone, in any case; without one, in that of this machine', async () => {
  expect(await ask('get_time_local', { timezone: 'asia/kolkata' })).toMatchObject({
    result: '2026-11-15T09:00:05+05:30',
    offset: '+05:30',
  })
  expect(await ask('get_time_local', { timezone: 'America/New York' })).toMatchObject({
    result: '2026-11-14T22:30:05-05:00',
    timezone: 'America/New_York',
    weekday: 'Saturday',
  })
  const here = new Intl.DateTimeFormat().resolvedOptions().timeZone
  expect(await ask('get_time_local')).toMatchObject({ timezone: here, utc: '2026-11-15T03:30:05Z' })
})

test.each([
  ['2026-11-15T10:30:00+01:00', '2026-11-15T09:30:00Z', '+01:00'],
  ['2026-11-15T10:30:00.250Z', '2026-11-15T10:30:00.250Z', 'UTC'],
  ['2026-11-15 10:30', '2026-11-15T10:30:00Z', 'UTC'],
  ['2026-11-15T10:30:00-0330', '2026-11-15T14:00:00Z', '-03:30'],
  ['2026-11-15T10:30[Europe/Berlin]', '2026-11-15T09:30:00Z', 'Europe/Berlin'],
  ['2026-11-15', '2026-11-15T00:00:00Z', 'UTC'],
  ['20261115', '2026-11-15T00:00:00Z', 'UTC'],
  ['20261115T103000Z', '2026-11-15T10:30:00Z', 'UTC'],
  ['Sun, 15 Nov 2026 10:30:00 +0100', '2026-11-15T09:30:00Z', '+01:00'],
  ['15 nov 2026 10:30 GMT', '2026-11-15T10:30:00Z', 'UTC'],
  ['10:30', '2026-11-15T10:30:00Z', 'UTC'],
  ['now', '2026-11-15T03:30:05Z', 'UTC'],
  ['1763000000', '2025-11-13T02:13:20Z', 'UTC'],
  [1763000000, '2025-11-13T02:13:20Z', 'UTC'],
  [1763000000123, '2025-11-13T02:13:20.123Z', 'UTC'],
  [-1, '1969-12-31T23:59:59Z', 'UTC'],
  ['0099-03-01', '0099-03-01T00:00:00Z', 'UTC'],
])('S2: parse_time reads %j', async (value, utc, timezone) => {
  expect(await ask('parse_time', { value })).toMatchObject({ utc, timezone })
})

test('S2: a time without an offset is meant in the zone given, and shown there', async () => {
  expect(await ask('parse_time', { value: '2026-07-01 12:00', timezone: 'Europe/Berlin' })).toMatchObject({
    result: '2026-07-01T12:00:00+02:00',
    utc: '2026-07-01T10:00:00Z',
  })
  expect(await ask('parse_time', { value: '2026-07-01T12:00Z', timezone: 'Europe/Berlin' })).toMatchObject({
    result: '2026-07-01T14:00:00+02:00',
  })
})

test.each([
  ['2026-03-29 02:30', '2026-03-29T03:30:00+02:00'],
  ['2026-10-25 02:30', '2026-10-25T02:30:00+02:00'],
])('S2: %s, which clocks in Berlin skip or show twice, has one meaning', async (value, result) => {
  expect((await ask('parse_time', { value, timezone: 'Europe/Berlin' })).result).toBe(result)
})

test.each([
  [undefined, '2026-11-15T10:30:09+01:00'],
  ['unix', '1794735009'],
  ['unix_ms', '1794735009000'],
  ['date', '2026-11-15'],
  ['time', '10:30:09'],
  ['datetime', '2026-11-15 10:30:09'],
  ['rfc2822', 'Sun, 15 Nov 2026 10:30:09 +0100'],
  ['long', 'Sunday, 15 November 2026, 10:30:09 Europe/Berlin'],
  ['yyyy-MM-ddTHH:mm:ss.SSSXXX', '2026-11-15T10:30:09.000+01:00'],
  ['YYYY/MM/DD h:mm a', '2026/11/15 10:30 AM'],
  ["d. MMM yy 'at' H'h'", '15. Nov 26 at 10h'],
  ['[week of] dddd', 'week of Sunday'],
  ['%d/%m/%y %I:%M %p 100%%', '15/11/26 10:30 AM 100%'],
  ['%F %T %z', '2026-11-15 10:30:09 +0100'],
])('S2: format_time writes %j', async (format, result) => {
  const answer = await ask('format_time', { value: '2026-11-15T09:30:09Z', timezone: 'Europe/Berlin', format })
  expect(answer.result).toBe(result)
})

test('S2: convert_timezone reads in one zone and shows in the other; the time may be now', async () => {
  const args = { value: '2026-11-15 09:00', from: 'America/New_York', to: 'Asia/Tokyo' }
  expect(await ask('convert_timezone', args)).toMatchObject({
    result: '2026-11-15T23:00:00+09:00',
    timezone: 'Asia/Tokyo',
  })
  expect(await ask('convert_timezone', { to: 'Asia/Tokyo', format: 'HH:mm' })).toMatchObject({ result: '12:30' })
})

test.each([
  [
    { from: '2026-11-15', to: '2026-11-17T03:04:05Z' },
    '2 days 3 hours 4 minutes 5 seconds later',
    'P2DT3H4M5S',
    183845,
  ],
  [{ from: '2026-11-15T01:00Z', to: '2026-11-15T00:59Z' }, '1 minute earlier', '-PT1M', -60],
  [{ from: '2026-11-15', to: '2026-11-15' }, 'no difference', 'PT0S', 0],
  [{ from: '2026-11-15T03:30:00Z' }, '5 seconds later', 'PT5S', 5],
  [{ from: '2026-03-28', to: '2026-03-30', timezone: 'Europe/Berlin' }, '1 day 23 hours later', 'P1DT23H', 169200],
])('S2: time_difference of %j is %s', async (args, result, duration, seconds) => {
  expect(await ask('time_difference', args)).toEqual({ result, duration, seconds })
})

test.each([
  ['2026-01-31', 'P1M', '2026-02-28T00:00:00Z'],
  ['2024-02-29', '1 year', '2025-02-28T00:00:00Z'],
  ['2026-11-15', '-3 days', '2026-11-12T00:00:00Z'],
  ['2026-11-15', '2 hours 30 minutes', '2026-11-15T02:30:00Z'],
  ['2026-11-15', 'P1W', '2026-11-22T00:00:00Z'],
  ['2026-11-15', '1.5h', '2026-11-15T01:30:00Z'],
  ['2026-11-15', 'P1DT1H', '2026-11-16T01:00:00Z'],
])('S2: add_time to %s of %s', async (value, duration, result) => {
  expect((await ask('add_time', { value, duration })).result).toBe(result)
})

test('S2: a day later is the same time of day, though the clocks were changed; 24 hours later is not', async () => {
  const args = { value: '2026-03-28 12:00', timezone: 'Europe/Berlin' }
  expect((await ask('add_time', { ...args, duration: '1 day' })).result).toBe('2026-03-29T12:00:00+02:00')
  expect((await ask('add_time', { ...args, duration: '24h' })).result).toBe('2026-03-29T13:00:00+02:00')
})

test('S2: time_string is another name for value; both at once are refused', async () => {
  const answer = { result: '2026-02-23T01:31:15Z' }
  expect(await ask('parse_time', { time_string: '2026-02-23T01:31:15Z' })).toMatchObject(answer)
  expect(await ask('add_time', { time_string: '2026-02-22T01:31:15Z', duration: '1 day' })).toMatchObject(answer)
  const both = { name: 'parse_time', value: 'now', time_string: 'now' }
  expect((await refusalOf(runTool(time, both))).message).toContain('does not accept "time_string"')
})

test.each([
  [{ name: 'parse_tiem' }, 'did you mean "parse_time"?'],
  [{ name: 'get_time_local', timezone: 'Berlin' }, 'did you mean "Europe/Berlin"?'],
  [{ name: 'get_time_local', timezone: 'Europe/Berlim' }, 'did you mean "Europe/Berlin"?'],
  [{ name: 'get_time_local', timezone: 'Mars' }, 'use an IANA name'],
  [{ name: 'get_time_utc', timezone: 'Europe/Berlin' }, '"timezone"; it takes format'],
  [{ name: 'parse_time' }, 'parse_time needs "value"'],
  [{ name: 'parse_time', value: 'soon' }, '"soon" is not a recognized time'],
  [{ name: 'parse_time', value: '3/4/2026' }, 'is not a recognized time'],
  [{ name: 'parse_time', value: '2026-02-29' }, 'not a valid date'],
  [{ name: 'parse_time', value: '2026-13-01' }, 'not a valid date'],
  [{ name: 'parse_time', value: '2026-01-00' }, 'not a valid date'],
  [{ name: 'parse_time', value: '24:00' }, 'not a valid time of day'],
  [{ name: 'parse_time', value: '15 November 2026' }, 'write it as ISO 8601'],
  [{ name: 'parse_time', value: 'Nov 15, 2026 10:30' }, 'RFC 2822 such as "15 Nov 2026 10:30:00 +0100"'],
  [{ name: 'parse_time', value: '31 Feb 2026 10:30 GMT' }, 'not a valid date'],
  [{ name: 'parse_time', value: '15 Foo 2026 10:30 GMT' }, 'seconds or milliseconds since 1970'],
  [{ name: 'parse_time', value: 99999999999999 * 9 }, 'outside the years'],
  [{ name: 'format_time', value: 'now', format: 'QQQ' }, '"QQQ" in "format"'],
  [{ name: 'format_time', value: 'now', format: '%Q' }, '"%Q" in "format"'],
  [{ name: 'add_time', duration: 'a while' }, 'is not a duration'],
  [{ name: 'add_time', duration: 'P' }, 'is not a duration'],
  [{ name: 'add_time', duration: '1.5 days' }, 'use hours instead'],
  [{ name: 'add_time', duration: '999999999 years' }, 'outside the years'],
  [{ name: 'convert_timezone', value: 'now' }, 'convert_timezone needs "to"'],
])('S2: time refuses %j with a sentence that helps', async (args, sentence) => {
  const refusal = await refusalOf(runTool(time, args))
  expect(refusal.code).toBe('INVALID_ARGUMENTS')
  expect(refusal.message).toContain(sentence)
})
