import { CannotExpress } from '../conversion.ts'
import { type JsonSchemaObject, numberIn } from '../schema.ts'
import { anyOf, charIn, charSet, type Expression, literal, maybe, noText, sequence, times } from './expression.ts'

/** Maximum number of multiples that a grammar lists. */
const maxMultiples = 512

export function integerExpression(schema: JsonSchemaObject, at: string): Expression | undefined {
  const low = boundOf(schema, 'minimum', at)
  const high = boundOf(schema, 'maximum', at)
  const from = low
    ? Math.ceil(low.value) + Number(!low.included && Number.isInteger(low.value))
    : Number.NEGATIVE_INFINITY
  const to = high
    ? Math.floor(high.value) - Number(!high.included && Number.isInteger(high.value))
    : Number.POSITIVE_INFINITY
  const factor = numberIn(schema.multipleOf)
  return factor === undefined || factor === 1 ? integersBetween(from, to) : multiples(factor, from, to, at)
}

export function numberExpression(schema: JsonSchemaObject, at: string): Expression | undefined {
  if (schema.multipleOf !== undefined) return integerExpression(schema, at)
  const low = boundOf(schema, 'minimum', at)
  const high = boundOf(schema, 'maximum', at)
  if (!low && !high) return anyNumber
  const found = decimalsBetween(low, high)
  if (found !== 'imprecise') return found
  throw new CannotExpress(at, low ? 'minimum' : 'maximum', 'is too large or has too many digits')
}

function multiples(factor: number, from: number, to: number, at: string): Expression | undefined {
  if (!Number.isInteger(factor) || factor < 1) throw new CannotExpress(at, 'multipleOf', 'is not a positive integer')
  const [first, last] = [Math.ceil(from / factor), Math.floor(to / factor)]
  if (last - first > maxMultiples)
    throw new CannotExpress(at, 'multipleOf', 'allows too many numbers; set minimum and maximum')
  const list = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * factor)
  return anyOf(...list.map((value) => literal(String(value === 0 ? 0 : value))))
}

/** The stricter bound on one side. In older drafts, `exclusiveMinimum` is a boolean next to `minimum`. */
function boundOf(schema: JsonSchemaObject, keyword: 'minimum' | 'maximum', at: string): Bound | undefined {
  const exclusive = keyword === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'
  for (const name of [keyword, exclusive]) {
    const bound = schema[name]
    if (bound !== undefined && typeof bound !== 'boolean' && numberIn(bound) === undefined)
      throw new CannotExpress(at, name, 'is not a number')
  }
  const [one, other] = [numberIn(schema[keyword]), numberIn(schema[exclusive])]
  if (one !== undefined && (other === undefined || (keyword === 'minimum' ? one > other : one < other)))
    return { value: one, included: schema[exclusive] !== true }
  return other === undefined ? undefined : { value: other, included: false }
}

const anyDigit = charIn('09')
const leading = charIn('19')
const digitsFrom = (from: number, to: number): Expression => charSet([[0x30 + from, 0x30 + to]])

/** The largest integer that a grammar allows. Larger ones lose precision in some JSON parsers. */
const largest = 999_999_999_999_999

/** The integers from `min` to `max`, inclusive; `undefined` if there are none. */
function integersBetween(min: number, max: number): Expression | undefined {
  const low = Math.max(min, -largest)
  const high = Math.min(max, largest)
  if (low > high) return undefined
  const negative = low < 0 ? naturalsBetween(Math.max(1, -high), -low) : undefined
  const natural = high >= 0 ? naturalsBetween(Math.max(0, low), high) : undefined
  return anyOf(natural, negative && sequence(literal('-'), negative))
}

/** The non-negative integers from `min` to `max`, inclusive; `undefined` if there are none. */
function naturalsBetween(min: number, max: number): Expression | undefined {
  if (min > max) return undefined
  const options: Expression[] = []
  const lengths = { from: String(min).length, to: String(max).length }
  for (let length = lengths.from; length <= lengths.to; length++) {
    const smallest = length === 1 ? 0 : 10 ** (length - 1)
    const from = Math.max(min, smallest)
    const to = Math.min(max, 10 ** length - 1)
    let end = length
    while (from === smallest && end < lengths.to && 10 ** (end + 1) - 1 <= max) end++
    if (from === smallest && length > 1 && end > length) {
      options.push(sequence(leading, times(anyDigit, length - 1, end - 1)))
      length = end
    } else options.push(sameLength(String(from), String(to)))
  }
  return anyOf(...options)
}

/** The numbers between two bounds, which are digit strings of equal length. */
function sameLength(low: string, high: string): Expression {
  if (/^0*$/.test(low) && /^9*$/.test(high)) return times(anyDigit, low.length, low.length)
  const [first, last] = [Number(low[0]), Number(high[0])]
  const [lowRest, highRest] = [low.slice(1), high.slice(1)]
  if (first === last) return sequence(literal(String(first)), sameLength(lowRest, highRest))
  const options: Expression[] = []
  let [from, to] = [first, last]
  if (!/^0*$/.test(lowRest)) {
    options.push(sequence(literal(String(from++)), sameLength(lowRest, highRest.replace(/./g, '9'))))
  }
  const top = /^9*$/.test(highRest)
    ? undefined
    : sequence(literal(String(to--)), sameLength(lowRest.replace(/./g, '0'), highRest))
  if (from <= to) options.push(sequence(digitsFrom(from, to), times(anyDigit, lowRest.length, lowRest.length)))
  return anyOf(...options, top) as Expression
}

interface Bound {
  readonly value: number
  /** Whether the bound itself is in the range. */
  readonly included: boolean
}

/** Any number, with optional fraction and exponent. */
export const anyNumber: Expression = sequence(
  maybe(literal('-')),
  anyOf(literal('0'), sequence(leading, times(anyDigit, 0, 14))) as Expression,
  maybe(sequence(literal('.'), times(anyDigit, 1, 10))),
  maybe(sequence(charIn('E', 'e'), maybe(charIn('+', '-')), times(anyDigit, 1, 2))),
)

/** Maximum number of digits. Longer numbers lose precision in some JSON parsers. */
const maxNumberDigits = 15

interface DecimalBound {
  readonly whole: number
  /** The digits after the decimal point, without trailing zeros. */
  readonly fraction: string
  readonly included: boolean
}

/** Decimals in a range, without exponents; `undefined` if there are none, `'imprecise'` if a bound is too precise. */
function decimalsBetween(low: Bound | undefined, high: Bound | undefined): Expression | undefined | 'imprecise' {
  const far = [low, high].some((bound) => bound && Math.abs(bound.value) >= 1e9) ? 1e15 - 1 : 1e9 - 1
  const [from, to] = [low ?? { value: -far, included: true }, high ?? { value: far, included: true }]
  const [first, last] = [decimalBound(from), decimalBound(to)]
  const [negatedFirst, negatedLast] = [
    decimalBound({ ...from, value: -from.value }),
    decimalBound({ ...to, value: -to.value }),
  ]
  if (!first || !last || !negatedFirst || !negatedLast) return 'imprecise'
  const wholeDigits = String(Math.max(Math.abs(first.whole), Math.abs(last.whole))).length
  const places = Math.max(first.fraction.length, last.fraction.length, Math.min(6, maxNumberDigits - wholeDigits))
  if (wholeDigits + places > maxNumberDigits) return 'imprecise'
  const zero: DecimalBound = { whole: 0, fraction: '', included: true }
  const positive = to.value >= 0 ? decimalsInside(from.value < 0 ? zero : first, last, places) : undefined
  const above = to.value < 0 ? negatedLast : { ...zero, included: false }
  const negative = from.value < 0 ? decimalsInside(above, negatedFirst, places) : undefined
  return anyOf(positive, negative && sequence(literal('-'), negative))
}

function decimalBound({ value, included }: Bound): DecimalBound | undefined {
  const size = Math.abs(value)
  if (size >= 1e15) return undefined
  for (let places = 0; places <= maxNumberDigits; places++) {
    const digits = size.toFixed(places)
    if (Number(digits) !== size) continue
    const [whole = '0', fraction = ''] = digits.split('.')
    return { whole: Number(whole), fraction, included }
  }
  return undefined
}

/** The decimals between two non-negative bounds; `undefined` if there are none. */
function decimalsInside(low: DecimalBound, high: DecimalBound, places: number): Expression | undefined {
  if (low.whole > high.whole) return undefined
  const whole = (number: number) => literal(String(number))
  if (low.whole === high.whole) return joinParts(whole(low.whole), fractions(low, high, places))
  return anyOf(
    joinParts(whole(low.whole), fractions(low, undefined, places)),
    joinParts(naturalsBetween(low.whole + 1, high.whole - 1), fractions(undefined, undefined, places)),
    joinParts(whole(high.whole), fractions(undefined, high, places)),
  )
}

const joinParts = (one: Expression | undefined, other: Expression | undefined): Expression | undefined =>
  one && other && sequence(one, other)

/** The fractions between two bounds, including the decimal point. An omitted fraction means zero. */
function fractions(
  low: DecimalBound | undefined,
  high: DecimalBound | undefined,
  places: number,
): Expression | undefined {
  const digits = nextDigits({ low, high }, places)
  return anyOf(mayEnd({ low, high }) ? noText : undefined, digits && sequence(literal('.'), digits))
}

/** The bounds for the remaining digits. */
interface Bounds {
  readonly low: DecimalBound | undefined
  readonly high: DecimalBound | undefined
}

/** Whether the number may end here, that is, whether all remaining digits may be zero. */
const mayEnd = ({ low, high }: Bounds): boolean =>
  (!low || (low.fraction === '' && low.included)) && (high?.fraction !== '' || high.included)

/** The next digit and the digits that may follow it. */
function nextDigits({ low, high }: Bounds, places: number): Expression | undefined {
  if (places === 0 || high?.fraction === '') return undefined
  const lowest = low && !(low.fraction === '' && low.included) ? Number(low.fraction[0] ?? 0) : undefined
  const highest = high ? Number(high.fraction[0]) : undefined
  const after = (bound: Bounds['low']) => bound && { ...bound, fraction: bound.fraction.slice(1) }
  const follow = (from: number, to: number, bounds: Bounds): Expression | undefined => {
    if (from > to) return undefined
    const more = nextDigits(bounds, places - 1)
    const tail = anyOf(mayEnd(bounds) ? noText : undefined, more)
    return tail && sequence(digitsFrom(from, to), tail)
  }
  if (lowest !== undefined && lowest === highest) return follow(lowest, lowest, { low: after(low), high: after(high) })
  if ((lowest ?? 0) > (highest ?? 9)) return undefined
  const open = (lowest ?? -1) + 1 <= (highest ?? 10) - 1
  return anyOf(
    lowest === undefined ? undefined : follow(lowest, lowest, { low: after(low), high: undefined }),
    open ? sequence(digitsFrom((lowest ?? -1) + 1, (highest ?? 10) - 1), times(anyDigit, 0, places - 1)) : undefined,
    highest === undefined ? undefined : follow(highest, highest, { low: undefined, high: after(high) }),
  )
}
