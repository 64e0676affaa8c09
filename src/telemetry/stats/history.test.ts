import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { latencyBucket } from '../../lib/latency-histogram.ts'
import { observedOf, type Told } from '../metrics/observed.fixture.ts'
import { createHistory } from './stats.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const start = Date.UTC(2027, 0, 15)

const add = (history: ReturnType<typeof createHistory>, now: number, told: Told = {}) => {
  const observed = observedOf(told)
  history.add(now, observed, latencyBucket(observed.ms))
}

test('G9: a quarter of an hour comes by the second, a day by the minute, a month by the hour', () => {
  const history = createHistory()
  const now = start + 30 * day
  const stepOf = (spanMs: number) => history.series(now - spanMs, now, now).stepMs
  expect([minute, 15 * minute, 16 * minute, 6 * hour, 2 * day, 30 * day].map(stepOf)).toEqual([
    ...[second, second, minute, minute, hour, hour],
  ])
  expect(stepOf(day)).toBe(2 * minute)
})

test('G9: points are in order and without holes, and each has what happened in its step', () => {
  const history = createHistory()
  add(history, start + 100, { ms: 20 })
  add(history, start + 900, { ms: 40, outcome: { kind: 'tool_error' } })
  add(history, start + 2500, { trail: { cache: 'hit', steps: [] }, ms: 1 })
  add(history, start + 2600, { trail: { cache: 'miss', steps: [] }, outcome: { kind: 'denied' } })
  const { points, stepMs } = history.series(start, start + 4000, start + 4000)
  expect(stepMs).toBe(second)
  expect(points.map(({ at }) => at - start)).toEqual([0, 1000, 2000, 3000])
  expect(points[0]).toMatchObject({ calls: 2, errors: 1, denials: 0, perSecond: 2, averageMs: 30 })
  expect(points[1]).toMatchObject({ calls: 0, averageMs: null, p99Ms: null })
  expect(points[2]).toMatchObject({ calls: 2, denials: 1, cacheHits: 1, cacheMisses: 1, averageMs: null, hitMs: 1 })
})

test('G9: calls too old for seconds are still known by the minute and by the hour', () => {
  const history = createHistory()
  add(history, start)
  for (const later of [20 * minute, 3 * hour, 5 * day]) {
    const now = start + later
    add(history, now)
    const { points } = history.series(start, now + 1, now)
    expect(points[0]?.calls).toBeGreaterThanOrEqual(1)
  }
})

test('G9: any range is answered with bounded many points, which hold every call that is still known', () => {
  const range = fc.tuple(fc.integer({ min: 0, max: 30 * day }), fc.integer({ min: 0, max: 60 * day }))
  const history = createHistory()
  const now = start + 30 * day
  for (let at = start; at <= now; at += 47 * minute) add(history, at)
  fc.assert(
    fc.property(range, ([before, length]) => {
      const from = now - before
      const { points, stepMs } = history.series(from, from + length, now)
      expect(points.length).toBeLessThanOrEqual(1001)
      const misplaced = points.filter(({ at }, index) => at !== (points[0]?.at as number) + index * stepMs)
      expect(misplaced).toEqual([])
    }),
    runs(30, 5_000),
  )
  const { points } = history.series(0, now + 1, now)
  expect(points.reduce((sum, { calls }) => sum + calls, 0)).toBeGreaterThan((29.9 * day) / (47 * minute))
})

test('G9: an empty range has no points', () => {
  const { points } = createHistory().series(start + 1, start, start)
  expect(points).toEqual([])
})
