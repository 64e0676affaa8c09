import { all, any, type Expression, nothing, optional, set, text, times } from './expression.ts'
import { digit, naturalsBetween } from './integers.ts'

/** One end of a range of numbers. */
export interface Bound {
  readonly value: number
  /** Whether the number itself belongs to the range. */
  readonly included: boolean
}

/** Any number, with or without fraction and exponent. */
export const anyNumber: Expression = all(
  optional(text('-')),
  any(text('0'), all(set([[0x31, 0x39]]), times(digit, 0, 14))) as Expression,
  optional(all(text('.'), times(digit, 1, 10))),
  optional(
    all(
      set([
        [0x45, 0x45],
        [0x65, 0x65],
      ]),
      optional(
        set([
          [0x2b, 0x2b],
          [0x2d, 0x2d],
        ]),
      ),
      times(digit, 1, 2),
    ),
  ),
)

/** A number of more digits than this would no longer be compared rightly by everybody. */
const maxDigits = 15

interface Decimal {
  readonly whole: number
  /** The digits after the point, without noughts at the end. */
  readonly fraction: string
  readonly included: boolean
}

/** The numbers between two bounds, without exponents; `undefined` where there is none, `'imprecise'` where no digits suffice. */
export function decimalsBetween(low: Bound | undefined, high: Bound | undefined): Expression | undefined | 'imprecise' {
  const far = [low, high].some((bound) => bound && Math.abs(bound.value) >= 1e9) ? 1e15 - 1 : 1e9 - 1
  const [from, to] = [low ?? { value: -far, included: true }, high ?? { value: far, included: true }]
  const [first, last] = [decimal(from), decimal(to)]
  const [negatedFirst, negatedLast] = [decimal({ ...from, value: -from.value }), decimal({ ...to, value: -to.value })]
  if (!first || !last || !negatedFirst || !negatedLast) return 'imprecise'
  const wholeDigits = String(Math.max(Math.abs(first.whole), Math.abs(last.whole))).length
  const places = Math.max(first.fraction.length, last.fraction.length, Math.min(6, maxDigits - wholeDigits))
  if (wholeDigits + places > maxDigits) return 'imprecise'
  const zero: Decimal = { whole: 0, fraction: '', included: true }
  const positive = to.value >= 0 ? between(from.value < 0 ? zero : first, last, places) : undefined
  const above = to.value < 0 ? negatedLast : { ...zero, included: false }
  const negative = from.value < 0 ? between(above, negatedFirst, places) : undefined
  return any(positive, negative && all(text('-'), negative))
}

function decimal({ value, included }: Bound): Decimal | undefined {
  const size = Math.abs(value)
  if (size >= 1e15) return undefined
  for (let places = 0; places <= maxDigits; places++) {
    const digits = size.toFixed(places)
    if (Number(digits) !== size) continue
    const [whole = '0', fraction = ''] = digits.split('.')
    return { whole: Number(whole), fraction, included }
  }
  return undefined
}

/** Numbers without a sign. */
function between(low: Decimal, high: Decimal, places: number): Expression | undefined {
  if (low.whole > high.whole) return undefined
  const whole = (number: number) => text(String(number))
  if (low.whole === high.whole) return joined(whole(low.whole), fractions(low, high, places))
  return any(
    joined(whole(low.whole), fractions(low, undefined, places)),
    joined(naturalsBetween(low.whole + 1, high.whole - 1), fractions(undefined, undefined, places)),
    joined(whole(high.whole), fractions(undefined, high, places)),
  )
}

const joined = (one: Expression | undefined, other: Expression | undefined): Expression | undefined =>
  one && other && all(one, other)

/** What may follow a whole number so that the fraction lies between two others; nothing at all stands for nought. */
function fractions(low: Decimal | undefined, high: Decimal | undefined, places: number): Expression | undefined {
  const bounds: Bounds = {
    low: low && { digits: low.fraction, included: low.included },
    high: high && { digits: high.fraction, included: high.included },
  }
  const digits = nextDigits(bounds, places)
  return any(mayEnd(bounds) ? nothing : undefined, digits && all(text('.'), digits))
}

interface Bounds {
  readonly low: { readonly digits: string; readonly included: boolean } | undefined
  readonly high: { readonly digits: string; readonly included: boolean } | undefined
}

/** Whether the digits so far, and noughts for ever after, lie within what is left of the bounds. */
const mayEnd = ({ low, high }: Bounds): boolean =>
  (!low || (low.digits === '' && low.included)) && (high?.digits !== '' || high.included)

/** One digit more, and perhaps others. */
function nextDigits({ low, high }: Bounds, places: number): Expression | undefined {
  if (places === 0 || high?.digits === '') return undefined
  const lowest = low && !(low.digits === '' && low.included) ? Number(low.digits[0] ?? 0) : undefined
  const highest = high ? Number(high.digits[0]) : undefined
  const after = (bound: Bounds['low']) => bound && { ...bound, digits: bound.digits.slice(1) }
  const follow = (from: number, to: number, bounds: Bounds): Expression | undefined => {
    if (from > to) return undefined
    const more = nextDigits(bounds, places - 1)
    const tail = any(mayEnd(bounds) ? nothing : undefined, more)
    return tail && all(set([[0x30 + from, 0x30 + to]]), tail)
  }
  if (lowest !== undefined && lowest === highest) return follow(lowest, lowest, { low: after(low), high: after(high) })
  if ((lowest ?? 0) > (highest ?? 9)) return undefined
  const open = (lowest ?? -1) + 1 <= (highest ?? 10) - 1
  return any(
    lowest === undefined ? undefined : follow(lowest, lowest, { low: after(low), high: undefined }),
    open ? all(set([[0x30 + (lowest ?? -1) + 1, 0x30 + (highest ?? 10) - 1]]), times(digit, 0, places - 1)) : undefined,
    highest === undefined ? undefined : follow(highest, highest, { low: undefined, high: after(high) }),
  )
}
