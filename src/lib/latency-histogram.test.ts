import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import { addLatencies, addPacked, createLatencies, latencyBucket, pack, percentile } from './latency-histogram.ts'

const durations = fc.array(
  fc.oneof(
    fc.double({ min: 0.01, max: 3_600_000, noNaN: true }),
    fc.double({ min: 0.01, max: 5, noNaN: true }),
    fc.constantFrom(0.01, 1, 10, 100, 3_600_000),
  ),
  { minLength: 1, maxLength: 400 },
)

const counted = (all: readonly number[]) => {
  const latencies = createLatencies()
  for (const ms of all) latencies[latencyBucket(ms)]!++
  return latencies
}

/** The value that so large a part of all are not greater than. */
const exact = (all: readonly number[], part: number) =>
  all.toSorted((one, another) => one - another)[Math.max(1, Math.ceil(part * all.length)) - 1] as number

test('G9: every percentile is within two percent of the exact one', () => {
  fc.assert(
    fc.property(durations, fc.double({ min: 0, max: 1, noNaN: true }), (all, any) => {
      const latencies = counted(all)
      for (const part of [0.5, 0.95, 0.99, 1, any]) {
        const truth = exact(all, part)
        expect(Math.abs((percentile(latencies, all.length, part) as number) - truth) / truth).toBeLessThanOrEqual(0.02)
      }
    }),
    runs(100, 5_000),
  )
})

test('G9: the sum of two histograms equals the histogram of all durations', () => {
  fc.assert(
    fc.property(durations, durations, (some, others) => {
      const sum = counted(some)
      addLatencies(sum, counted(others))
      expect(sum).toEqual(counted([...some, ...others]))
    }),
  )
})

test('G9: nothing is lost by packing', () => {
  fc.assert(
    fc.property(durations, (all) => {
      const unpacked = createLatencies()
      addPacked(unpacked, pack(counted(all)))
      expect(unpacked).toEqual(counted(all))
    }),
  )
})

test('G9: invalid and extreme durations are counted in the first and last bucket, and an empty histogram has no percentile', () => {
  for (const odd of [0, -1, Number.NaN]) expect(latencyBucket(odd)).toBe(0)
  expect(latencyBucket(1e12)).toBe(createLatencies().length - 1)
  expect(latencyBucket(Number.POSITIVE_INFINITY)).toBe(createLatencies().length - 1)
  expect(percentile(createLatencies(), 0, 0.5)).toBeNull()
  expect(createLatencies().byteLength).toBeLessThan(2200)
})
