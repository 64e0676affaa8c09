import { describe, expect, test } from 'vitest'
import {
  type Chart,
  charts,
  describeChart,
  isolatedPoints,
  logarithmicRange,
  plotData,
  tickLabel,
  withoutPartialPoint,
} from './chart.ts'

const point = (at: number, more: object = {}) => ({
  at,
  calls: 0,
  errors: 0,
  denials: 0,
  perSecond: 0,
  averageMs: null,
  p50Ms: null,
  p95Ms: null,
  p99Ms: null,
  cacheHits: 0,
  cacheMisses: 0,
  toolErrors: 0,
  hitMs: null,
  ...more,
})

const series = {
  from: 0,
  to: 3000,
  stepMs: 1000,
  points: [point(1000), point(2000, { p50Ms: 4, p95Ms: 40, p99Ms: 1200 }), point(3000, { p50Ms: 2, p95Ms: 20 })],
}
const latency = charts[1] as Chart

describe('G10: charts', () => {
  test('times are in seconds, and intervals without calls are gaps', () => {
    expect(plotData(series, latency)).toEqual([
      [1, 2, 3],
      [null, 4, 2],
      [null, 40, 20],
      [null, 1200, null],
      [null, null, null],
    ])
  })

  test('what is not known because Toolway did not run is a gap in every chart, not a zero', () => {
    const points = [point(1000, { calls: 1, perSecond: 1 }), point(2000, { gap: true }), point(3000)]
    for (const chart of charts) {
      const [, ...lines] = plotData({ ...series, points }, chart)
      expect(lines.map((line) => line[1])).toEqual(lines.map(() => null))
    }
    expect(plotData({ ...series, points }, charts[0] as Chart).slice(1)).toEqual(Array(4).fill([1, null, 0]))
    expect(describeChart({ ...series, points: [point(1000, { gap: true })] }, charts[2] as Chart)).toContain('no data')
  })

  test('outcomes are stacked and add up to all calls; the latency of cache hits is a line of its own', () => {
    const busy = point(1000, { calls: 10, perSecond: 5, errors: 3, toolErrors: 1, denials: 2, hitMs: 0.002 })
    const one = { ...series, points: [busy] }
    expect(plotData(one, charts[0] as Chart).slice(1)).toEqual([[2.5], [3], [4], [5]])
    expect(plotData(one, latency).at(-1)).toEqual([0.01])
  })

  test('the axis of latencies is logarithmic and ends at powers of ten', () => {
    expect(logarithmicRange(3, 4_000)).toEqual([1, 10_000])
    expect(logarithmicRange(20, 30)).toEqual([10, 100])
    expect(logarithmicRange(0, 1)).toEqual([0.01, 1])
    expect(logarithmicRange(null, null)).toEqual([1, 1000])
  })

  test('a value without neighbours is drawn as a point', () => {
    expect(isolatedPoints([1, null, 2, null, 3, 4, null, undefined, 5])).toEqual([0, 2, 8])
    expect(isolatedPoints([])).toEqual([])
  })

  test('the axis of counts has integer labels only', () => {
    expect([0, 0.5, 1].map((value) => tickLabel(charts[2] as Chart, value))).toEqual(['0', '', '1'])
    expect(tickLabel(charts[0] as Chart, 0.5)).toBe('0.5')
  })

  test('have a text alternative', () => {
    expect(describeChart(series, latency)).toBe(
      'Latency. p50: 2 ms to 4 ms, last 2 ms; p95: 20 ms to 40 ms, last 20 ms; p99: 1.2 s to 1.2 s, last 1.2 s; cache hits: no data.',
    )
    expect(describeChart({ ...series, points: [] }, latency)).toContain('p50: no data')
  })

  test('lines differ even without colours', () => {
    for (const { lines } of charts) {
      expect(new Set(lines.map(({ dash }) => String(dash))).size).toBe(lines.length)
    }
  })

  test('G10: an incomplete last point is dropped unless it is the only one', () => {
    const times = ({ points }: { points: readonly { at: number }[] }) => points.map(({ at }) => at)
    expect(times(withoutPartialPoint(series, 3500))).toEqual([1000, 2000])
    expect(times(withoutPartialPoint(series, 4000))).toEqual([1000, 2000, 3000])
    const [only] = series.points
    expect(withoutPartialPoint({ ...series, points: only ? [only] : [] }, 1500).points).toEqual([only])
  })
})
