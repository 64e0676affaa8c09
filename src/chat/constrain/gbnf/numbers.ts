import { CannotExpress } from '../cannot-express.ts'
import { numberIn, type SchemaObject } from '../schema.ts'
import { anyNumber, type Bound, decimalsBetween } from './decimals.ts'
import { any, type Expression, text } from './expression.ts'
import { integersBetween } from './integers.ts'

/** More multiples than these are not listed one by one. */
const maxMultiples = 512

/** The whole numbers that a schema allows. */
export function integers(schema: SchemaObject, at: string): Expression | undefined {
  const low = lowerBound(schema, at)
  const high = upperBound(schema, at)
  const from = low
    ? Math.ceil(low.value) + Number(!low.included && Number.isInteger(low.value))
    : Number.NEGATIVE_INFINITY
  const to = high
    ? Math.floor(high.value) - Number(!high.included && Number.isInteger(high.value))
    : Number.POSITIVE_INFINITY
  const factor = numberIn(schema.multipleOf)
  return factor === undefined || factor === 1 ? integersBetween(from, to) : multiples(factor, from, to, at)
}

/** The numbers that a schema allows. */
export function numbers(schema: SchemaObject, at: string): Expression | undefined {
  if (schema.multipleOf !== undefined) return integers(schema, at)
  const low = lowerBound(schema, at)
  const high = upperBound(schema, at)
  if (!low && !high) return anyNumber
  const found = decimalsBetween(low, high)
  if (found !== 'imprecise') return found
  throw new CannotExpress(at, low ? 'minimum' : 'maximum', 'is too large or has too many digits')
}

function multiples(factor: number, from: number, to: number, at: string): Expression | undefined {
  if (!Number.isInteger(factor) || factor < 1) throw new CannotExpress(at, 'multipleOf', 'is no whole number')
  const [first, last] = [Math.ceil(from / factor), Math.floor(to / factor)]
  if (last - first > maxMultiples) throw new CannotExpress(at, 'multipleOf', 'allows too many numbers; set bounds')
  const list = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * factor)
  return any(...list.map((value) => text(String(value === 0 ? 0 : value))))
}

function lowerBound(schema: SchemaObject, at: string): Bound | undefined {
  return narrower(schema, at, 'minimum', 'exclusiveMinimum', (one, other) => one > other)
}

function upperBound(schema: SchemaObject, at: string): Bound | undefined {
  return narrower(schema, at, 'maximum', 'exclusiveMaximum', (one, other) => one < other)
}

/** In older drafts, `exclusiveMinimum` is a flag beside `minimum`. */
function narrower(
  schema: SchemaObject,
  at: string,
  keyword: string,
  exclusive: string,
  isNarrower: (one: number, other: number) => boolean,
): Bound | undefined {
  const [inclusive, excluded] = [schema[keyword], schema[exclusive]]
  for (const [name, bound] of [
    [keyword, inclusive],
    [exclusive, excluded],
  ] as const) {
    if (bound !== undefined && typeof bound !== 'boolean' && numberIn(bound) === undefined) {
      throw new CannotExpress(at, name, 'is no number')
    }
  }
  const [one, other] = [numberIn(inclusive), numberIn(excluded)]
  if (one === undefined) return other === undefined ? undefined : { value: other, included: false }
  if (other === undefined || isNarrower(one, other)) return { value: one, included: excluded !== true }
  return { value: other, included: false }
}
