import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { createSeenTime } from './seen-time.ts'

const dayMs = 86_400_000
const start = Date.UTC(2027, 0, 1)
/** The time this many days after the start. */
const day = (days: number) => start + days * dayMs
/** One record a day, the newest first. */
const daily = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => day(to - index))

/** The age limit of 30 days, in days after the start, for a process that starts now. */
const limitAt = (now: number, times: readonly number[]) =>
  (createSeenTime(createManualClock(day(now)), 30 * dayMs, dayMs).before(30 * dayMs, times) - start) / dayMs

test('F11: with records of every few days, age is what the clock says', () => {
  expect(limitAt(100, daily(0, 100))).toBe(70)
  expect(limitAt(100, daily(0, 97))).toBe(70)
  expect(limitAt(100, [99, 97, 94, 93, 90, 88, 85, 82, 80, 77, 75, 72, 69, 66].map(day))).toBe(70)
  expect(limitAt(100, [])).toBe(70)
})

test('F11: a clock that is years ahead ages records by three of thirty days, however often', () => {
  expect(limitAt(5_000, daily(0, 100))).toBe(73)
  const ahead = [day(5_000), ...daily(0, 100)]
  for (let n = 0; n < 3; n++) ahead.unshift(day(5_000))
  expect(limitAt(5_000, ahead)).toBe(73)
  expect(limitAt(101, ahead)).toBe(71)
})

test('F11: time that nobody has seen counts for records before it, not for those after it', () => {
  const times = [...daily(200, 220), ...daily(0, 100)]
  expect(limitAt(220, times)).toBe(93)
  expect(limitAt(229, [...daily(221, 229), ...times])).toBeCloseTo(200 - 1)
  expect(limitAt(240, [...daily(221, 240), ...times])).toBe(210)
})

test('F11: the time that a process runs counts, until its clock jumps', () => {
  const clock = createManualClock(day(0))
  const seen = createSeenTime(clock, 30 * dayMs, dayMs)
  const limit = () => (seen.before(30 * dayMs, [day(0)]) - start) / dayMs
  clock.advance(100 * dayMs)
  expect(limit()).toBe(70)
  clock.setWall(day(5_000))
  expect(limit()).toBeLessThan(0)
  clock.advance(29 * dayMs)
  expect(limit()).toBe(4_999)
  clock.setWall(day(130))
  expect(limit()).toBeLessThan(0)
  clock.advance(31 * dayMs)
  expect(limit()).toBe(131)
})
