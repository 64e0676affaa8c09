import type { Held } from '../measure/observed.ts'
import { fitLine } from '../measure/statistics.ts'

export interface HeldWithPeak extends Held {
  /** Highest resident memory within the round. */
  readonly peak: number
}

/** A measurement, with its time in minutes since the start. */
export type Moment = readonly [minutes: number, held: HeldWithPeak]

export interface Slope {
  readonly what: keyof HeldWithPeak
  readonly perHour: number
  /** Two standard errors. */
  readonly doubt: number
  readonly mean: number
  readonly first: number
  readonly last: number
  /** The slope is positive by more than two standard errors, and the growth is above the tolerance. */
  readonly grows: boolean
}

/** Growth within one run that is no cause for concern: pages that the allocator keeps, a connection that is closing. */
const tolerated: Record<keyof HeldWithPeak, number> = {
  rss: 8_000_000,
  peak: 32_000_000,
  heap: 2_000_000,
  external: 4_000_000,
  descriptors: 3,
  timers: 5,
}

/** Share of the run after which caches and pools have their final size. */
const warmUpShare = 0.5

/** The slope of each measurement, by least squares over the second half of the run. */
export function slopesOf(moments: readonly Moment[]): Slope[] {
  const [end] = moments.at(-1) as Moment
  const settled = moments.filter(([minutes]) => minutes >= end * warmUpShare)
  const [start] = settled[0] as Moment
  return (Object.keys(tolerated) as (keyof HeldWithPeak)[]).map((what) => {
    const { slope, doubt, mean } = fitLine(settled.map(([minutes, held]) => [minutes, held[what]] as const))
    const grown = slope * (end - start)
    return {
      what,
      perHour: slope * 60,
      doubt: doubt * 60,
      mean,
      first: (settled[0] as Moment)[1][what],
      last: (settled.at(-1) as Moment)[1][what],
      grows: slope - doubt > 0 && grown > tolerated[what],
    }
  })
}

const countOnly = new Set<keyof HeldWithPeak>(['descriptors', 'timers'])

/** The table for people. */
export function readableSlopes(slopes: readonly Slope[]): string {
  const show = (what: keyof HeldWithPeak, value: number) =>
    countOnly.has(what) ? value.toFixed(1) : `${(value / 1_000_000).toFixed(2)} MB`
  const lines = slopes.map(({ what, perHour, doubt, mean, first, last, grows }) =>
    [
      what.padEnd(12),
      show(what, mean).padStart(12),
      `${show(what, first)} to ${show(what, last)}`.padStart(24),
      `${show(what, perHour)} ± ${show(what, doubt)} an hour`.padStart(36),
      `  ${grows ? 'GROWS' : 'steady'}`,
    ].join(''),
  )
  const head = ['measured'.padEnd(12), 'mean'.padStart(12), 'first, last'.padStart(24), 'slope'.padStart(36)].join('')
  return [head, ...lines].join('\n')
}
