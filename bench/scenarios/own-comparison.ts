import { compare, type Metric } from '../measure/comparison.ts'
import type { Series } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { type Bound, compared, type Row, without } from '../measure/verdict.ts'
import { samplesOf } from './yardstick.ts'

export interface Question {
  readonly scenario: string
  readonly what: string
  /** The arm that is asked about. */
  readonly arm: string
  /** What it is compared with; the same thing twice, in two arms, where the noise is to be known. */
  readonly against: readonly [string, string]
  readonly metric: Metric
  readonly unit: string
  readonly digits?: number
  readonly bound: Bound
  readonly of: string
}

/** The row that answers a question about two arms of one series, or says which of them failed. */
export function answer(series: Series, question: Question): Row {
  const { scenario, what, arm, against, metric, unit, digits = 2, bound, of } = question
  const failed = [arm, ...against].find((name) => series.failures.has(name))
  if (failed !== undefined) return without(scenario, what, 'failed', `${failed}: ${series.failures.get(failed)}`)
  const absolute = `${median(samplesOf(series, arm).map(metric)).toFixed(digits)} ${unit}`
  const [one, other] = against
  const comparison = compare(samplesOf(series, arm), [samplesOf(series, one), samplesOf(series, other)], metric)
  return compared({ scenario, what, absolute }, comparison, bound, of)
}
