import type { Observed } from '../../core/observer.ts'
import { addCounts, type Counts, count, noCounts } from './counts.ts'
import { addLatencies, createLatencies, type Latencies } from './latencies.ts'
import { addPacked, type Packed, pack } from './packed.ts'

/** What happened in one step of time. */
export interface Step extends Counts {
  cacheHits: number
  cacheMisses: number
}

export const noStep = (): Step => ({ ...noCounts(), cacheHits: 0, cacheMisses: 0 })

/** The last so many steps of one length; what is older is forgotten, step by step. */
export interface Ring {
  readonly stepMs: number
  /** How far back it remembers. */
  readonly spanMs: number
  add(now: number, observed: Observed, bucket: number): void
  /** Adds up all steps that begin within a stretch of time. */
  collect(from: number, to: number, into: Step, latencies: Latencies): void
}

interface Kept extends Step {
  /** Which one since the epoch. */
  number: number
  /** None while it is the one that is counted in. */
  packed: Packed | undefined
}

export function createRing(stepMs: number, steps: number): Ring {
  const kept = new Array<Kept | undefined>(steps)
  // Only the step of now has every bucket: most of the others would be nearly empty.
  const latencies = createLatencies()
  let live: Kept | undefined
  let newest = 0

  /** Also backwards: a clock that was set right must not lose what comes. */
  const turnTo = (number: number): Kept => {
    if (live) live.packed = pack(latencies)
    latencies.fill(0)
    const place = number % steps
    const before = kept[place]
    if (before?.number === number && before.packed) addPacked(latencies, before.packed)
    const step = before?.number === number ? before : { ...noStep(), number, packed: undefined }
    step.packed = undefined
    kept[place] = step
    live = step
    newest = number
    return step
  }

  return {
    stepMs,
    spanMs: stepMs * steps,
    add(now, { ms, outcome, trail }, bucket) {
      const number = Math.floor(now / stepMs)
      const step = live?.number === number ? live : turnTo(number)
      count(step, latencies, outcome.kind, ms, bucket)
      if (trail.cache === 'hit') step.cacheHits++
      else if (trail.cache === 'miss') step.cacheMisses++
    },
    collect(from, to, into, sum) {
      const first = Math.max(Math.ceil(from / stepMs), newest - steps + 1)
      const last = Math.min(Math.ceil(to / stepMs) - 1, newest)
      for (let number = first; number <= last; number++) {
        const step = kept[number % steps]
        if (step?.number !== number) continue
        addCounts(into, step)
        into.cacheHits += step.cacheHits
        into.cacheMisses += step.cacheMisses
        if (step.packed) addPacked(sum, step.packed)
        else addLatencies(sum, latencies)
      }
    },
  }
}
