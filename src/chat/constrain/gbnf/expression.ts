/** First and last code point, inclusive. */
export type CodePointRange = readonly [number, number]

/** Character ranges, each written as its first and last character or as a single character: `09`, `_`. */
export const rangesOf = (...ranges: readonly string[]): readonly CodePointRange[] =>
  ranges.map(([first = '', last = first]) => [first.codePointAt(0) as number, last.codePointAt(0) as number])

export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'set'; readonly ranges: readonly CodePointRange[] }
  /** A sequence (`all`) or a list of alternatives (`any`). */
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Expression[] }
  | { readonly kind: 'times'; readonly inner: Expression; readonly min: number; readonly max: number }
  | { readonly kind: 'rule'; readonly name: string }

export const literal = (content: string): Expression => ({ kind: 'text', text: content })

export const noText: Expression = literal('')

/** One character from any of these ranges. */
export const charSet = (ranges: readonly CodePointRange[]): Expression => {
  const [only] = ranges
  return ranges.length === 1 && only && only[0] === only[1]
    ? literal(String.fromCodePoint(only[0]))
    : { kind: 'set', ranges }
}

export const charIn = (...ranges: readonly string[]): Expression => charSet(rangesOf(...ranges))

export function sequence(...parts: readonly Expression[]): Expression {
  const flat: Expression[] = []
  for (const part of parts.flatMap((one) => (one.kind === 'all' ? one.parts : [one]))) {
    const last = flat.at(-1)
    if (part.kind === 'text' && last?.kind === 'text') flat[flat.length - 1] = literal(last.text + part.text)
    else if (part.kind !== 'text' || part.text !== '') flat.push(part)
  }
  const [only = noText] = flat
  return flat.length < 2 ? only : { kind: 'all', parts: flat }
}

/** Alternatives; `undefined` options can never match and are dropped. */
export function anyOf(...options: readonly (Expression | undefined)[]): Expression | undefined {
  const different = new Map<string, Expression>()
  for (const option of options.flatMap<Expression | undefined>((one) => (one?.kind === 'any' ? one.parts : [one]))) {
    if (option === undefined) continue
    const key = option.kind === 'text' ? `"${option.text}` : JSON.stringify(option)
    if (!different.has(key)) different.set(key, option)
  }
  const parts = [...different.values()]
  return parts.length < 2 ? parts[0] : { kind: 'any', parts }
}

export function times(inner: Expression, min: number, max: number): Expression {
  if (max === 0 || (inner.kind === 'text' && inner.text === '')) return noText
  if (min === 1 && max === 1) return inner
  return { kind: 'times', inner, min, max }
}

export const maybe = (inner: Expression): Expression => times(inner, 0, 1)

/** Size of the blocks into which repetitions are grouped, so that large bounds do not become thousands of rules. */
const repetitionBlock = 64

/**
 * Like `times`, for bounds of any size. Model servers unfold `{0,n}` into n rules and refuse more than a few thousand.
 * The result is unambiguous, so that matching stays fast.
 */
export function manyTimes(inner: Expression, min: number, max: number): Expression {
  if (max <= 4 * repetitionBlock) return times(inner, min, max)
  const whole = times(inner, repetitionBlock, repetitionBlock)
  const head = [
    times(whole, Math.floor(min / repetitionBlock), Math.floor(min / repetitionBlock)),
    times(inner, min % repetitionBlock, min % repetitionBlock),
  ]
  const left = max - min
  const blocks = Math.floor(left / repetitionBlock)
  const tail = anyOf(
    sequence(times(whole, 0, blocks - 1), times(inner, 0, repetitionBlock - 1)),
    sequence(times(whole, blocks, blocks), times(inner, 0, left % repetitionBlock)),
  ) as Expression
  return sequence(...head, left <= 4 * repetitionBlock ? times(inner, 0, left) : tail)
}

const hexDigit = charIn('09', 'AF', 'af')

/** Characters that a JSON string may contain unescaped. */
export const rawRanges = rangesOf(' !', '#[', ']\ud7ff', '\ue000\u{10ffff}')

/** The hex digits of a `\u` escape. Excludes surrogates: a pair counts as one character, and a lone one is invalid. */
const hexOfWhole = anyOf(
  sequence(charIn('09', 'AC', 'EF', 'ac', 'ef'), hexDigit, hexDigit, hexDigit),
  sequence(charIn('D', 'd'), charIn('07'), hexDigit, hexDigit),
) as Expression

/** One character of a JSON string, raw or escaped. */
export const character = anyOf(
  charSet(rawRanges),
  sequence(literal('\\'), anyOf(charIn(...'"/\\bfnrt'), sequence(literal('u'), hexOfWhole)) as Expression),
) as Expression

/** A JSON string of `min` to `max` characters. */
export const stringOf = (one: Expression, min: number, max: number): Expression =>
  sequence(literal('"'), manyTimes(one, min, max), literal('"'))

/** Characters that have a short escape, such as `\n`. */
const escapable = [...'\b\t\n\f\r"\\']

/** One of these characters as written inside a JSON string; `undefined` if none can be written. */
export function writableCharacters(ranges: readonly CodePointRange[]): Expression | undefined {
  const raw = intersectRanges(ranges, rawRanges)
  const escaped = escapable
    .filter((sign) => intersectRanges(ranges, rangesOf(sign)).length > 0)
    .map((sign) => literal(JSON.stringify(sign).slice(1, -1)))
  return anyOf(raw.length > 0 ? charSet(raw) : undefined, ...escaped)
}

/** The intersection of two lists of ranges. */
export function intersectRanges(
  one: readonly CodePointRange[],
  other: readonly CodePointRange[],
): readonly CodePointRange[] {
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
