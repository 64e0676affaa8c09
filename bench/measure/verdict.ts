import type { Comparison } from './comparison.ts'
import { doubtOfMedian, median } from './statistics.ts'

/** `undecided`: the machine is too noisy to tell. `skipped`: not measured, and the note says why. */
export type Verdict = 'met' | 'missed' | 'undecided' | 'skipped' | 'failed' | 'for information'

/** One line of the report. */
export interface Row {
  readonly scenario: string
  readonly what: string
  readonly measured: string
  readonly target: string
  readonly verdict: Verdict
  /** How far the rounds lie apart, and how much the machine does by itself. */
  readonly spread: string
  readonly note?: string
  /** The figure behind `measured`, for programs. */
  readonly value?: number
}

export interface Bound {
  readonly least?: number
  readonly most?: number
}

/** As many rounds must be of one opinion. */
const agreement = 0.75

/**
 * Whether a ratio keeps a bound; refuses to say where the difference drowns in the noise, or where the rounds do not
 * agree about it.
 */
export function judge({ ratio: value, noise, ratios }: Comparison, { least, most }: Bound): Verdict {
  if (least === undefined && most === undefined) return 'for information'
  if (!Number.isFinite(value) || value <= 0) return 'failed'
  const bound = (least ?? most) as number
  if (Math.abs(Math.log(value / bound)) < Math.log1p(noise)) return 'undecided'
  const keeps = (ratio: number) => (least === undefined ? ratio <= bound : ratio >= bound)
  const agreeing = ratios.filter((ratio) => keeps(ratio) === keeps(value)).length
  if (agreeing < agreement * ratios.length) return 'undecided'
  return keeps(value) ? 'met' : 'missed'
}

/** The same for figures that have a bound of their own: their median must lie below it by more than they scatter. */
export function judgeMedian(values: readonly number[], below: number): Verdict {
  const distance = below - median(values)
  if (Math.abs(distance) < doubtOfMedian(values)) return 'undecided'
  return distance > 0 ? 'met' : 'missed'
}

const times = (ratio: number): string => `${ratio.toFixed(2)}×`

export const percent = (share: number): string =>
  Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%` : 'unknown'

const targetOf = ({ least, most }: Bound, of = ''): string => {
  if (least !== undefined) return `≥ ${times(least)}${of}`
  return most === undefined ? '' : `≤ ${times(most)}${of}`
}

/** The row of a comparison. */
export function compared(
  { scenario, what, absolute }: { scenario: string; what: string; absolute: string },
  comparison: Comparison,
  bound: Bound,
  of: string,
): Row {
  const { ratio, low, high, noise, ratios, outliers } = comparison
  const outlying = outliers > 0 ? `, outliers: ${outliers} of ${ratios.length} rounds` : ''
  return {
    scenario,
    what,
    measured: `${times(ratio)} (${absolute})`,
    target: targetOf(bound, of),
    verdict: judge(comparison, bound),
    spread: `${times(low)}–${times(high)}, noise ±${percent(noise)}${outlying}`,
    value: ratio,
  }
}

/** A row that tells why there is no figure. */
export const without = (
  scenario: string,
  what: string,
  verdict: 'skipped' | 'failed',
  note: string,
  target = '',
): Row => ({ scenario, what, measured: '', target, verdict, spread: '', note })
