import { all, any, type CodePointRange, type Expression, manyTimes, set, text } from './expression.ts'

const hex = set([
  [0x30, 0x39],
  [0x41, 0x46],
  [0x61, 0x66],
])

/** Characters that a JSON string may contain unescaped. */
export const rawRanges: readonly CodePointRange[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0xd7ff],
  [0xe000, 0x10ffff],
]

/** Excludes surrogates: a pair counts as one character, and a lone one is invalid. */
const hexOfWhole = any(
  all(
    set([
      [0x30, 0x39],
      [0x41, 0x43],
      [0x45, 0x46],
      [0x61, 0x63],
      [0x65, 0x66],
    ]),
    hex,
    hex,
    hex,
  ),
  all(
    set([
      [0x44, 0x44],
      [0x64, 0x64],
    ]),
    set([[0x30, 0x37]]),
    hex,
    hex,
  ),
) as Expression

/** One character of a JSON string, raw or escaped. */
export const character = any(
  set(rawRanges),
  all(
    text('\\'),
    any(
      set([...'"/\\bfnrt'].map((sign) => [sign.codePointAt(0), sign.codePointAt(0)] as unknown as CodePointRange)),
      all(text('u'), hexOfWhole),
    ) as Expression,
  ),
) as Expression

/** A JSON string of any characters. */
export const anyString = (one: Expression, min: number, max: number): Expression =>
  all(text('"'), manyTimes(one, min, max), text('"'))

const named: readonly (readonly [number, string])[] = [
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x22, '\\"'],
  [0x5c, '\\\\'],
]

/** One of these characters as written inside a JSON string; `undefined` if none can be written. */
export function written(ranges: readonly CodePointRange[]): Expression | undefined {
  const includes = (point: number) => ranges.some(([from, to]) => from <= point && point <= to)
  const raw = overlap(ranges, rawRanges)
  const escaped = named.filter(([point]) => includes(point)).map(([, short]) => text(short))
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

/** All code points outside these ranges. */
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
