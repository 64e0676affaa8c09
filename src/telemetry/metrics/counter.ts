import { type Family, type FamilyOptions, type Sample, seriesOf } from './family.ts'

/** Held by whoever counts, which makes counting one addition: `counter.value++`. */
export interface Counter {
  value: number
}

export interface CounterFamily extends Family {
  /** The counter of these label values, in the order of the label names; asked for once and then held. */
  of(...values: readonly string[]): Counter
}

export function counterFamily(options: FamilyOptions): CounterFamily {
  const { of, all } = seriesOf(options, (): Counter => ({ value: 0 }))
  return {
    ...options,
    type: 'counter',
    of,
    samples: () => all().map(({ labels, series }): Sample => ({ labels, value: series.value })),
  }
}
