import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLatencies, latencyBucket, percentile } from '../../lib/latency-histogram.ts'
import { observedOf } from '../metrics/observed.fixture.ts'
import { createRing, noCounts, type Ring } from './stats.ts'

const add = (ring: Ring, now: number, ms = 10) => ring.add(now, observedOf({ ms }), latencyBucket(ms))

const collected = (ring: Ring, from: number, to: number) => {
  const step = noCounts()
  const latencies = createLatencies()
  ring.collect(from, to, step, latencies)
  return { ...step, p100: percentile(latencies, step.calls, 1) }
}

test('G9: steps are kept up to the capacity, then the oldest is dropped', () => {
  const ring = createRing(10, 3)
  for (const now of [100, 105, 110, 120]) add(ring, now)
  expect([100, 110, 120].map((at) => collected(ring, at, at + 10).calls)).toEqual([2, 1, 1])
  add(ring, 130)
  expect([100, 110, 120, 130].map((at) => collected(ring, at, at + 10).calls)).toEqual([0, 1, 1, 1])
  expect(collected(ring, 0, 1000).calls).toBe(3)
})

test('G9: after a long pause, old steps do not count as new ones', () => {
  const ring = createRing(10, 3)
  add(ring, 100)
  add(ring, 10_000)
  expect(collected(ring, 0, 20_000).calls).toBe(1)
  expect(collected(ring, 0, 1000).calls).toBe(0)
})

test('G9: a clock that is set back neither loses nor doubles a call', () => {
  const ring = createRing(10, 5)
  add(ring, 100, 5)
  add(ring, 120, 7)
  add(ring, 101, 9)
  add(ring, 121, 11)
  expect(collected(ring, 100, 110)).toMatchObject({ calls: 2, sumMs: 14 })
  expect(collected(ring, 120, 130)).toMatchObject({ calls: 2, sumMs: 18 })
  expect(collected(ring, 120, 130).p100).toBeCloseTo(11, 0)
})

test('G9: any stretch of whole steps holds exactly the calls that ended in it', () => {
  const times = fc.array(fc.integer({ min: 0, max: 499 }), { maxLength: 60 })
  const stretch = fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 50 }))
  fc.assert(
    fc.property(times, stretch, (all, [one, another]) => {
      const ring = createRing(10, 50)
      for (const at of all.toSorted((a, b) => a - b)) add(ring, at)
      const [from, to] = [Math.min(one, another) * 10, Math.max(one, another) * 10]
      expect(collected(ring, from, to).calls).toBe(all.filter((at) => at >= from && at < to).length)
    }),
  )
})
