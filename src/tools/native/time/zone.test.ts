import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { instantOf, utcOf, wallAt, wallInUtc, zoneNamed } from './moment.ts'

const zone = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  '+13:45',
)
const instant = fc.integer({ min: Date.UTC(1971, 0, 1), max: Date.UTC(2100, 0, 1) })

test('S2: a clock in a zone shows a time that leads back to the instant, or to its twin before the clocks were set back', () => {
  fc.assert(
    fc.property(zone, instant, (name, when) => {
      const place = zoneNamed(name)
      const wall = wallAt(when, place)
      const back = instantOf(wall, place)
      expect(wallAt(back, place)).toEqual(wall)
      expect(back).toBeLessThanOrEqual(when)
    }),
  )
})

test('S2: reading a calendar and reckoning an instant are each other’s inverse, from the first century on', () => {
  const day = fc.integer({ min: -62_000_000_000_000, max: 250_000_000_000_000 })
  fc.assert(
    fc.property(day, (when) => {
      expect(utcOf(wallInUtc(when))).toBe(when)
    }),
  )
})

test('S2: a zone keeps the name that it was asked for by', () => {
  expect(zoneNamed('europe/berlin').name).toBe('Europe/Berlin')
  expect(zoneNamed('Asia/Kolkata').name).toBe('Asia/Kolkata')
  expect(zoneNamed('EST').name).toBe('EST')
})

test.each(['Etc/Unknown', undefined])('S2: without a local zone (%s, as with an empty TZ), UTC is used', (timeZone) => {
  using options = vi.spyOn(Intl.DateTimeFormat.prototype, 'resolvedOptions')
  options.mockReturnValueOnce({ timeZone } as Intl.ResolvedDateTimeFormatOptions)
  const local = zoneNamed(undefined)
  expect([local.name, local.offsetAt(0)]).toEqual(['UTC', 0])
})
