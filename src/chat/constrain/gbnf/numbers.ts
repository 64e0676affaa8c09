import { CannotExpress } from '../conversion.ts'
import { type JsonSchemaObject, numberIn } from '../schema.ts'
import { anyOf, charIn, type Expression, literal, maybe, noText, sequence, times } from './expression.ts'

/** Maximum number of multiples that a grammar lists. */
const maxMultiples = 512

export function integerExpression(schema: JsonSchemaObject, at: string): Expression | undefined {
  const low = boundOf(schema, 'minimum', at)
  const high = boundOf(schema, 'maximum', at)
  const from = low ? (low.included ? Math.ceil(low.value) : Math.floor(low.value) + 1) : Number.NEGATIVE_INFINITY
  const to = high ? (high.included ? Math.floor(high.value) : Math.ceil(high.value) - 1) : Number.POSITIVE_INFINITY
  const factor = numberIn(schema.multipleOf) ?? 1
  return factor === 1 ? numbersBetween(from, to, 0) : multiples(factor, from, to, at)
}

/** Numbers between the bounds, without exponents; any number if there are no bounds. */
export function numberExpression(schema: JsonSchemaObject, at: string): Expression | undefined {
  if (schema.multipleOf !== undefined) return integerExpression(schema, at)
  const low = boundOf(schema, 'minimum', at)
  const high = boundOf(schema, 'maximum', at)
  if (!low && !high) return anyNumber
  const far = [low, high].some((bound) => bound && Math.abs(bound.value) >= 1e9) ? 1e15 - 1 : 1e9 - 1
  const [from, to] = [low ?? { value: -far, included: true }, high ?? { value: far, included: true }]
  const sizes = [from, to].map(({ value }) => Math.abs(value))
  const wholeDigits = String(Math.trunc(Math.max(...sizes))).length
  const places = Math.max(...sizes.map(decimalPlaces), Math.min(6, maxDigits - wholeDigits))
  if (wholeDigits + places > maxDigits)
    throw new CannotExpress(at, low ? 'minimum' : 'maximum', 'is too large or has too many digits')
  const scaled = ({ value }: Bound) => Math.round(value * 10 ** places)
  return numbersBetween(scaled(from) + Number(!from.included), scaled(to) - Number(!to.included), places)
}

function multiples(factor: number, from: number, to: number, at: string): Expression | undefined {
  if (!Number.isInteger(factor) || factor < 1) throw new CannotExpress(at, 'multipleOf', 'is not a positive integer')
  const [first, last] = [Math.ceil(from / factor), Math.floor(to / factor)]
  if (last - first > maxMultiples)
    throw new CannotExpress(at, 'multipleOf', 'allows too many numbers; set minimum and maximum')
  const list = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * factor)
  return anyOf(...list.map((value) => literal(String(value))))
}

interface Bound {
  readonly value: number
  /** Whether the bound itself is in the range. */
  readonly included: boolean
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

/** Maximum number of digits. Longer numbers lose precision in some JSON parsers. */
const maxDigits = 15

/** The number of decimal places of a number; infinite if it has too many digits. */
function decimalPlaces(size: number): number {
  for (let places = 0; places <= maxDigits && size < 1e15; places++)
    if (Number(size.toFixed(places)) === size) return places
  return Number.POSITIVE_INFINITY
}

const anyDigit = charIn('09')
const leading = charIn('19')

/** Any number, with optional fraction and exponent. */
export const anyNumber: Expression = sequence(
  maybe(literal('-')),
  anyOf(literal('0'), sequence(leading, times(anyDigit, 0, 14))) as Expression,
  maybe(sequence(literal('.'), times(anyDigit, 1, 10))),
  maybe(sequence(charIn('E', 'e'), maybe(charIn('+', '-')), times(anyDigit, 1, 2))),
)

/** The largest digits that a grammar allows. */
const largest = 10 ** maxDigits - 1

/**
 * The numbers with up to this many decimal places between two bounds, which are inclusive and scaled by these places:
 * 125 stands for 1.25 if there are two. `undefined` if there are none.
 */
function numbersBetween(min: number, max: number, places: number): Expression | undefined {
  const [low, high] = [Math.max(min, -largest), Math.min(max, largest)]
  const negative = positivesBetween(Math.max(1, -high), -low, places)
  return anyOf(positivesBetween(Math.max(0, low), high, places), negative && sequence(literal('-'), negative))
}

function positivesBetween(min: number, max: number, places: number): Expression | undefined {
  if (min > max) return undefined
  const options: (Expression | undefined)[] = []
  const digitsOf = (value: number) => String(value).padStart(places + 1, '0')
  for (let length = digitsOf(min).length; length <= digitsOf(max).length; length++) {
    const shortest = 10 ** (length - 1)
    const from = length === places + 1 ? min : Math.max(min, shortest)
    // Combine lengths of which all numbers are in the range.
    let last = length
    while (from === shortest && 10 ** (last + 1) - 1 <= max) last++
    if (last > length) {
      options.push(sequence(leading, times(anyDigit, length - places - 1, last - places - 1), anyFraction(places)))
      length = last
    } else options.push(digitsBetween(digitsOf(from), digitsOf(Math.min(max, 10 ** length - 1)), places))
  }
  return anyOf(...options)
}

const anyFraction = (places: number): Expression => restBetween('0'.repeat(places), '9'.repeat(places), places)

const isLowest = (digits: string): boolean => /^0*$/.test(digits)
const isHighest = (digits: string): boolean => /^9*$/.test(digits)

/** The numbers between two digit strings of equal length, of which the last `places` digits are the fraction. */
function digitsBetween(low: string, high: string, places: number): Expression {
  if (isLowest(low) && isHighest(high)) {
    const whole = low.length - places
    return whole > 0 ? sequence(times(anyDigit, whole, whole), anyFraction(places)) : times(anyDigit, 1, low.length)
  }
  const [lowRest, highRest] = [low.slice(1), high.slice(1)]
  const [zeros, nines] = ['0'.repeat(lowRest.length), '9'.repeat(lowRest.length)]
  const startWith = (from: number, to: number, ...[after, until]: readonly [string, string]) =>
    from > to ? undefined : sequence(charIn(`${from}${to}`), restBetween(after, until, places))
  const [first, last] = [Number(low[0]), Number(high[0])]
  if (first === last) return startWith(first, last, lowRest, highRest) as Expression
  const [from, to] = [isLowest(lowRest) ? first : first + 1, isHighest(highRest) ? last : last - 1]
  return anyOf(
    startWith(first, from - 1, lowRest, nines),
    startWith(from, to, zeros, nines),
    startWith(to + 1, last, zeros, highRest),
  ) as Expression
}

/** The rest of a number, which may end within its fraction if the digits that remain may be zeros. */
function restBetween(low: string, high: string, places: number): Expression {
  const mayEnd = low.length <= places && isLowest(low)
  const point = literal(low.length === places ? '.' : '')
  return anyOf(
    mayEnd ? noText : undefined,
    low === '' ? undefined : sequence(point, digitsBetween(low, high, places)),
  ) as Expression
}
