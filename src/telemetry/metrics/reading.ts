import { type Family, type FamilyOptions, labelsText } from './family.ts'

/** Label values, in the order of the label names, and what is read for them. */
export type Reading = readonly [values: readonly string[], value: number]

export interface ReadFamilyOptions extends FamilyOptions {
  readonly type: 'gauge' | 'counter'
  /** Asked whenever the page is. */
  read(): Iterable<Reading>
  /** What becomes of readings whose labels turn out to be the same; they are added up unless told otherwise. */
  readonly merge?: (one: number, another: number) => number
}

const sum = (one: number, another: number): number => one + another

/** What somebody else knows already is not counted twice, but read when it is wanted. */
export function readFamily({ read, merge = sum, ...options }: ReadFamilyOptions): Family {
  const { labels: names = [] } = options
  return {
    ...options,
    samples() {
      const merged = new Map<string, number>()
      for (const [values, value] of read()) {
        const labels = labelsText(names, values)
        const before = merged.get(labels)
        merged.set(labels, before === undefined ? value : merge(before, value))
      }
      return [...merged].map(([labels, value]) => ({ labels, value }))
    },
  }
}
