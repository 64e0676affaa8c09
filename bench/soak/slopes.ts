import type { Held } from '../measure/observed.ts'
import { fitLine } from '../measure/statistics.ts'

/** What was held at one moment, in minutes since the start. */
export type Moment = readonly [minutes: number, held: Held]

export interface Slope {
  readonly what: keyof Held
  readonly perHour: number
  /** Two standard errors. */
  readonly doubt: number
  readonly mean: number
  readonly first: number
  readonly last: number
  /** Grows surely, and by more than chance makes of a run of this length. */
  readonly grows: boolean
}

/** Growth within one run that nobody need worry about: pages that an allocator keeps, a connection that is just closing. */
const tolerated: Record<keyof Held, number> = {
  rss: 16_000_000,
  heap: 2_000_000,
  external: 4_000_000,
  descriptors: 3,
  timers: 5,
}

/** What is built once is built by then. */
const warmUpShare = 0.2

/** The slope of everything that is held, by least squares over all but the beginning. */
export function slopesOf(moments: readonly Moment[]): Slope[] {
  const [end] = moments.at(-1) as Moment
  const settled = moments.filter(([minutes]) => minutes >= end * warmUpShare)
  const [start] = settled[0] as Moment
  return (Object.keys(tolerated) as (keyof Held)[]).map((what) => {
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

const isBytes = (what: keyof Held) => what === 'rss' || what === 'heap' || what === 'external'

/** The table for people. */
export function readableSlopes(slopes: readonly Slope[]): string {
  const show = (what: keyof Held, value: number) =>
    isBytes(what) ? `${(value / 1_000_000).toFixed(2)} MB` : value.toFixed(1)
  const lines = slopes.map(({ what, perHour, doubt, mean, first, last, grows }) =>
    [
      what.padEnd(12),
      show(what, mean).padStart(12),
      `${show(what, first)} to ${show(what, last)}`.padStart(24),
      `${show(what, perHour)} ± ${show(what, doubt)} an hour`.padStart(36),
      `  ${grows ? 'GROWS' : 'steady'}`,
    ].join(''),
  )
  const head = ['held'.padEnd(12), 'mean'.padStart(12), 'from, to'.padStart(24), 'slope'.padStart(36)].join('')
  return [head, ...lines].join('\n')
}
