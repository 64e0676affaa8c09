import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress, pointerStep } from '../conversion.ts'
import { isSchema, type JsonSchemaObject, listedValues, numberIn, schemasIn } from '../schema.ts'
import { anyOf, type Expression, literal, maybe, noText, sequence, times } from './expression.ts'
import {
  type Conversion,
  type ConversionDepth,
  type GrammarContext,
  type GrammarRules,
  maxUnrolledItems,
} from './rules.ts'

/** The arrays that a schema allows. With `prefixItems`, each listed position must be filled. */
export const arrayExpression: Conversion = (context, schema, at, level) => {
  const row = schema.uniqueItems === true ? uniqueRow(context, schema, at) : rowOfItems(context, schema, at, level)
  const inner = sequenceOf(context.rules, 'items', row)
  return inner && sequence(literal('['), inner, literal(']'))
}

function boundsOf(context: GrammarContext, schema: JsonSchemaObject, at: string, places: number) {
  const min = numberIn(schema.minItems) ?? 0
  if (min > maxUnrolledItems) throw new CannotExpress(at, 'minItems', 'is too large')
  const defaultMax = Math.max(context.limits.items, min, places)
  return { min, max: Math.min(numberIn(schema.maxItems) ?? defaultMax, maxUnrolledItems) }
}

function rowOfItems(
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
  level: ConversionDepth,
): ElementSequence {
  const { places, rest, restName } = layout(schema)
  const bounds = boundsOf(context, schema, at, places.length)
  const placed: Expression[] = []
  for (const [index, place] of places.entries()) {
    const found = index < bounds.max ? context.convert(place, pointerStep(at, 'prefixItems', index), level) : undefined
    if (!found) break
    placed.push(context.rules.define('item', found))
  }
  const isWhole = placed.length === places.length
  // With `prefixItems`, allow further items only if the schema mentions or requires them.
  const wanted = rest ?? (places.length === 0 || bounds.min > places.length)
  const extra = isWhole ? context.convert(wanted, pointerStep(at, restName), level) : undefined
  return {
    parts: placed.map((expression) => ({ expression, required: true })),
    extra: extra && { expression: context.rules.define('item', extra), max: Math.max(0, bounds.max - placed.length) },
    ...bounds,
  }
}

/**
 * The schemas for the first positions, and the schema for the remaining items. Before draft 2020-12, `items` could list
 * the positions, with `additionalItems` for the remaining items.
 */
function layout(schema: JsonSchemaObject) {
  const [places, restName] = Array.isArray(schema.items)
    ? [schema.items, 'additionalItems']
    : [schema.prefixItems, 'items']
  const closed = schema.unevaluatedItems === false ? false : undefined
  return { places: schemasIn(places), rest: isSchema(schema[restName]) ? schema[restName] : closed, restName }
}

/** Arrays with unique items. A grammar can guarantee this only for listed values, in the order of the list. */
function uniqueRow(context: GrammarContext, schema: JsonSchemaObject, at: string): ElementSequence {
  const items = isRecord(schema.items) ? context.flatten(schema.items, pointerStep(at, 'items')) : schema.items
  const values = isRecord(items) ? listedValues(items) : undefined
  if (!values || Object.keys(items as object).some((keyword) => !quiet.has(keyword))) {
    throw new CannotExpress(at, 'uniqueItems', 'requires items with an enum')
  }
  const different = [...new Set(values.map((value) => JSON.stringify(value)))]
  const { min, max } = boundsOf(context, schema, at, different.length)
  return { parts: different.map((value) => ({ expression: literal(value), required: false })), min, max }
}

const quiet = new Set(['enum', 'const', 'type', 'title', 'description', 'default', 'examples'])

/** Comma-separated parts in a fixed order, some of them optional. */
interface ElementSequence {
  readonly parts: readonly { readonly expression: Expression; readonly required: boolean }[]
  /** An element that may follow the parts, up to `max` times. */
  readonly extra?: { readonly expression: Expression; readonly max: number } | undefined
  /** Minimum and maximum number of elements in total. */
  readonly min: number
  readonly max: number
}

const commaExpression = sequence(literal(','), maybe(literal(' ')))

/** An expression for the sequence; `undefined` if no number of elements is valid. */
export function sequenceOf(rules: GrammarRules, hint: string, row: ElementSequence): Expression | undefined {
  const { parts, extra, min, max } = row
  const required = parts.filter((part) => part.required).length
  const maxElements = parts.length + (extra?.max ?? 0)
  /** Whether elements must be counted to satisfy the bounds. If not, it only matters whether a comma is needed. */
  const counts = min > required || max < maxElements
  const known = new Map<string, Expression | undefined>()

  const from = (index: number, count: number): Expression | undefined => {
    const key = `${index}/${count}`
    if (!known.has(key)) {
      const found = index < parts.length ? part(index, count) : rest(count)
      const isLong = found?.kind === 'all' || found?.kind === 'any'
      known.set(key, found && isLong && index > 0 ? rules.define(hint, found) : found)
    }
    return known.get(key)
  }

  const part = (index: number, count: number): Expression | undefined => {
    const { expression, required } = parts[index] as ElementSequence['parts'][number]
    const one = count > 0 ? sequence(commaExpression, expression) : expression
    if (!required && !counts && count > 0) {
      const others = from(index + 1, count)
      return others && sequence(maybe(one), others)
    }
    const others = count < max ? from(index + 1, counts ? count + 1 : 1) : undefined
    const taken = others && sequence(one, others)
    return required ? taken : anyOf(taken, from(index + 1, count))
  }

  const rest = (count: number): Expression | undefined => {
    const low = counts ? Math.max(0, min - count) : 0
    const high = Math.min(extra?.max ?? 0, counts ? max - count : Number.POSITIVE_INFINITY)
    if (high < low) return undefined
    if (!extra || high === 0) return noText
    const next = sequence(commaExpression, extra.expression)
    if (count > 0) return times(next, low, high)
    const some = sequence(extra.expression, times(next, Math.max(0, low - 1), high - 1))
    return low === 0 ? maybe(some) : some
  }

  return min > max ? undefined : from(0, 0)
}
