import { expect, test } from 'vitest'
import { timelineBars, waitedMs } from './timeline-bars.ts'

const step = (name: string, startMs: number, ms: number | null, error: string | null = null) => ({
  name,
  startMs,
  ms,
  error,
})

test('G10: steps are percentages of the duration, and attempts are numbered', () => {
  const steps = [step('queue', 0, 10), step('attempt', 10, 40, 'TIMEOUT'), step('attempt', 60, 40)]
  expect(timelineBars({ steps, ms: 100, at: 0 }, 0)).toMatchObject([
    { name: 'queued', left: 0, width: 10 },
    { name: 'attempt 1', left: 10, width: 40, error: 'TIMEOUT' },
    { name: 'attempt 2', left: 60, width: 40 },
  ])
})

test('G10: running steps extend to the end', () => {
  const bars = timelineBars({ steps: [step('attempt', 50, null)], ms: null, at: 1000 }, 1200)
  expect(bars).toMatchObject([{ name: 'attempt', left: 25, width: 75 }])
})

test('G10: calls of zero duration and unknown steps are shown', () => {
  expect(timelineBars({ steps: [step('toString', 0, 0)], ms: 0, at: 0 }, 0)).toMatchObject([
    { name: 'toString', left: 0, width: 0 },
  ])
  expect(timelineBars({ steps: [], ms: 5, at: 0 }, 0)).toEqual([])
})

test('G10: what people took to answer is told apart from the duration', () => {
  const steps = [step('approve', 1, 60_000), step('attempt', 60_001, 10)]
  expect(waitedMs({ steps, ms: 11 })).toBe(60_000)
  expect(waitedMs({ steps: steps.slice(1), ms: 60_011 })).toBe(0)
  expect(waitedMs({ steps, ms: null })).toBe(0)
})
