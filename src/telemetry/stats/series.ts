import type { Observed } from '../../core/observer.ts'
import { type Figures, figuresOf } from './figures.ts'
import { createLatencies } from './latencies.ts'
import { createRing, noStep, type Ring } from './ring.ts'

/** Points for charts, oldest first; gaps are points with no calls. */
export interface Series {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly points: readonly Point[]
}

export interface Point extends Figures {
  /** When its step begins. */
  readonly at: number
  readonly cacheHits: number
  readonly cacheMisses: number
}

export interface History {
  add(now: number, observed: Observed, bucket: number): void
  /** As fine as is still known for a stretch of time, and no finer than a chart can show. */
  series(from: number, to: number, now: number): Series
  /** Of the last so many milliseconds, in whole steps; as many a second as make that in `duringMs`. */
  figures(ms: number, now: number, duringMs: number): Figures
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** A chart is about as many pixels wide. */
const maxPoints = 1000

/** What happened, and when: by the second for a quarter of an hour, by the minute for a day, by the hour for a month. */
export function createHistory(): History {
  const rings = [createRing(second, 15 * 60), createRing(minute, 24 * 60), createRing(hour, 30 * 24)] as const
  const ringFor = (from: number, now: number): Ring => rings.find(({ spanMs }) => from >= now - spanMs) ?? rings[2]

  return {
    add(now, observed, bucket) {
      for (const ring of rings) ring.add(now, observed, bucket)
    },
    series(from, to, now) {
      const ring = ringFor(from, now)
      const stepMs = ring.stepMs * Math.max(1, Math.ceil((to - from) / ring.stepMs / maxPoints))
      const latencies = createLatencies()
      const points: Point[] = []
      for (let at = Math.floor(from / stepMs) * stepMs; at < to; at += stepMs) {
        const step = noStep()
        latencies.fill(0)
        ring.collect(at, at + stepMs, step, latencies)
        const { cacheHits, cacheMisses } = step
        points.push({ at, ...figuresOf(step, latencies, stepMs), cacheHits, cacheMisses })
      }
      return { from, to, stepMs, points }
    },
    figures(ms, now, duringMs) {
      const step = noStep()
      const latencies = createLatencies()
      // The step that begins just now counts, too.
      ringFor(now - ms, now).collect(now - ms, now + 1, step, latencies)
      return figuresOf(step, latencies, duringMs)
    },
  }
}
