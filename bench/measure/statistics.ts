/** Small statistics that outliers do not spoil. */

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The usual distance from the median, scaled so that it is the standard deviation where values are normal. */
function deviation(values: readonly number[]): number {
  const middle = median(values)
  return 1.4826 * median(values.map((value) => Math.abs(value - middle)))
}

/** How far the median of these may be from the true one, two times out of a hundred or so. */
export const doubtOfMedian = (values: readonly number[]): number =>
  values.length < 2 ? Number.POSITIVE_INFINITY : (2 * 1.2533 * deviation(values)) / Math.sqrt(values.length)

/** Those that are far from the rest: over three deviations, and over a twentieth of the median. */
export function outliers(values: readonly number[]): number[] {
  const middle = median(values)
  const far = Math.max(3 * deviation(values), Math.abs(middle) / 20)
  return values.filter((value) => Math.abs(value - middle) > far)
}

export interface Line {
  /** Units of y per unit of x. */
  readonly slope: number
  /** The slope is this much less or more, two standard errors. */
  readonly doubt: number
  readonly mean: number
}

/** The straight line through the points, by least squares. */
export function fitLine(points: readonly (readonly [x: number, y: number])[]): Line {
  const count = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count
  const mean = points.reduce((sum, [, y]) => sum + y, 0) / count
  const square = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - mean), 0) / square
  const rest = points.reduce((sum, [x, y]) => sum + (y - mean - slope * (x - meanX)) ** 2, 0)
  return { slope, mean, doubt: count > 2 ? 2 * Math.sqrt(rest / (count - 2) / square) : Number.POSITIVE_INFINITY }
}
