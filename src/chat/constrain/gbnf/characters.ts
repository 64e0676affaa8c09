import { all, any, type CodePointRange, type Expression, manyTimes, oneOf, rangesOf, set, text } from './expression.ts'

const hex = oneOf('09', 'AF', 'af')

/** Characters that a JSON string may contain unescaped. */
export const rawRanges = rangesOf(' !', '#[', ']\ud7ff', '\ue000\u{10ffff}')

/** The hex digits of a `\u` escape. Excludes surrogates: a pair counts as one character, and a lone one is invalid. */
const hexOfWhole = any(
  all(oneOf('09', 'AC', 'EF', 'ac', 'ef'), hex, hex, hex),
  all(oneOf('D', 'd'), oneOf('07'), hex, hex),
) as Expression

/** One character of a JSON string, raw or escaped. */
export const character = any(
  set(rawRanges),
  all(text('\\'), any(oneOf(...'"/\\bfnrt'), all(text('u'), hexOfWhole)) as Expression),
) as Expression

/** A JSON string of `min` to `max` characters. */
export const anyString = (one: Expression, min: number, max: number): Expression =>
  all(text('"'), manyTimes(one, min, max), text('"'))

/** Characters that have a short escape, such as `\n`. */
const escapable = [...'\b\t\n\f\r"\\']

/** One of these characters as written inside a JSON string; `undefined` if none can be written. */
export function written(ranges: readonly CodePointRange[]): Expression | undefined {
  const raw = overlap(ranges, rawRanges)
  const escaped = escapable
    .filter((sign) => overlap(ranges, rangesOf(sign)).length > 0)
    .map((sign) => text(JSON.stringify(sign).slice(1, -1)))
  return any(raw.length > 0 ? set(raw) : undefined, ...escaped)
}

/** The intersection of two lists of ranges. */
export function overlap(one: readonly CodePointRange[], other: readonly CodePointRange[]): readonly CodePointRange[] {
  return one.flatMap(([from, to]) =>
    other.flatMap(([low, high]): CodePointRange[] => {
      const range: CodePointRange = [Math.max(from, low), Math.min(to, high)]
      return range[0] <= range[1] ? [range] : []
    }),
  )
}

export function complement(ranges: readonly CodePointRange[]): readonly CodePointRange[] {
  const left: CodePointRange[] = []
  let next = 0
  for (const [from, to] of ranges.toSorted((one, other) => one[0] - other[0])) {
    if (from > next) left.push([next, from - 1])
    next = Math.max(next, to + 1)
  }
  if (next <= 0x10ffff) left.push([next, 0x10ffff])
  return left
}
