import { cpus } from 'node:os'
import type { Sample } from '../load/orders.ts'
import type { Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import type { Row } from '../measure/verdict.ts'

/** Everything that a run has found, as `--json` prints it. */
export interface Report {
  readonly date: string
  readonly node: string
  readonly machine: string
  readonly rounds: number
  readonly turnSeconds: number
  /** What other processes took of the machine, from 0 to 1. */
  readonly others: { readonly median: number; readonly most: number }
  readonly rows: readonly Row[]
  readonly series: readonly {
    readonly scenario: string
    readonly inFlight: number
    readonly others: readonly number[]
    readonly arms: Readonly<Record<string, readonly Sample[]>>
  }[]
}

export interface Kept {
  readonly scenario: string
  readonly series: Series
}

export function reportOf(
  rows: readonly Row[],
  kept: readonly Kept[],
  how: Pick<Report, 'rounds' | 'turnSeconds'>,
): Report {
  const others = kept.flatMap(({ series }) => series.others)
  const all = cpus()
  return {
    date: new Date().toISOString(),
    node: process.version,
    machine: `${all[0]?.model ?? 'unknown'}, ${all.length} cores`,
    ...how,
    others: { median: median(others), most: Math.max(0, ...others) },
    rows,
    series: kept.map(({ scenario, series }) => ({
      scenario,
      inFlight: series.inFlight,
      others: series.others,
      arms: Object.fromEntries(series.samples),
    })),
  }
}
