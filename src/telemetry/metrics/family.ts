import { other } from './label-values.ts'

/** All series of one name. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  samples(): readonly Sample[]
}

/** One line of the page. */
export interface Sample {
  /** What the name of the family is followed by: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string
  /** As they are written between braces; empty where there are none. */
  readonly labels: string
  readonly value: number
}

export interface FamilyOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** How many series there may be; the rest is one more, whose labels are all `other`. */
  readonly most?: number
}

interface Labelled<Series> {
  readonly labels: string
  readonly series: Series
}

/** Even where each label is bounded, what they come to together might not be worth a page. */
const usualMost = 2000

/** The series of a family by their labels, each made when it is first asked for. */
export function seriesOf<Series>(
  { labels: names = [], most = usualMost }: FamilyOptions,
  make: () => Series,
): { of(...values: readonly string[]): Series; all(): Labelled<Series>[] } {
  const known = new Map<string, Series>()
  const made = (labels: string): Series => {
    const series = make()
    known.set(labels, series)
    return series
  }
  const rest = labelsText(
    names,
    names.map(() => other),
  )
  return {
    of(...values) {
      const labels = labelsText(names, values)
      const before = known.get(labels)
      if (before !== undefined) return before
      return known.size < most ? made(labels) : (known.get(rest) ?? made(rest))
    },
    all: () => [...known].map(([labels, series]) => ({ labels, series })),
  }
}

/** `tool="files.read",error="TIMEOUT"`. */
export const labelsText = (names: readonly string[], values: readonly string[]): string =>
  names.map((name, index) => `${name}="${escaped(values[index] as string)}"`).join(',')

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

const escaped = (value: string): string => value.replace(/[\\"\n]/g, (character) => escapes[character] as string)
