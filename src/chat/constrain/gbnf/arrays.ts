import { CannotExpress, step } from '../cannot-express.ts'
import { isSchema, isSchemaObject, numberIn, type Schema, type SchemaObject, schemasIn } from '../schema.ts'
import type { Context, Level } from './context.ts'
import { all, type Expression, text } from './expression.ts'
import { maxUnrolledItems } from './limits.ts'
import { listedValues } from './literals.ts'
import { type Row, rowOf } from './rows.ts'

/** The lists that a schema allows; where it speaks of places, all of them are filled. */
export function arrays(context: Context, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  const row = schema.uniqueItems === true ? uniqueRow(context, schema, at) : rowOfItems(context, schema, at, level)
  const inner = row && rowOf(context.rules, 'items', row)
  return inner && all(text('['), inner, text(']'))
}

function boundsOf(context: Context, schema: SchemaObject, at: string, places: number): Pick<Row, 'min' | 'max'> {
  const min = numberIn(schema.minItems) ?? 0
  if (min > maxUnrolledItems) throw new CannotExpress(at, 'minItems', 'is too large')
  const most = Math.max(context.limits.items, min, places)
  return { min, max: Math.min(numberIn(schema.maxItems) ?? most, maxUnrolledItems) }
}

function rowOfItems(context: Context, schema: SchemaObject, at: string, level: Level): Row | undefined {
  const { places, rest, restName } = layout(schema)
  const bounds = boundsOf(context, schema, at, places.length)
  const placed: Expression[] = []
  for (const [index, place] of places.entries()) {
    const found = index < bounds.max ? context.convert(place, step(at, 'prefixItems', index), level) : undefined
    if (!found) break
    placed.push(context.rules.define('item', found))
  }
  const isWhole = placed.length === places.length
  // Where places are given, more than these are not meant, unless something is said about them.
  const wanted = rest ?? (places.length === 0 || bounds.min > places.length)
  const extra = isWhole ? context.convert(wanted, step(at, restName), level) : undefined
  return {
    parts: placed.map((expression) => ({ expression, required: true })),
    extra: extra && { expression: context.rules.define('item', extra), most: Math.max(0, bounds.max - placed.length) },
    ...bounds,
  }
}

interface Layout {
  readonly places: readonly Schema[]
  readonly rest: Schema | undefined
  readonly restName: string
}

/** Before the latest draft, `items` could be a list of places and `additionalItems` the rest. */
function layout(schema: SchemaObject): Layout {
  const { items, prefixItems, additionalItems, unevaluatedItems } = schema
  const closed = unevaluatedItems === false ? false : undefined
  if (Array.isArray(items)) {
    return {
      places: schemasIn(items),
      rest: isSchema(additionalItems) ? additionalItems : closed,
      restName: 'additionalItems',
    }
  }
  return { places: schemasIn(prefixItems), rest: isSchema(items) ? items : closed, restName: 'items' }
}

/** Different items can only be promised where they are listed: each of them once, in the order of the list. */
function uniqueRow(context: Context, schema: SchemaObject, at: string): Row | undefined {
  const items = isSchemaObject(schema.items) ? context.flatten(schema.items, step(at, 'items')) : schema.items
  const values = isSchemaObject(items) ? listedValues(items) : undefined
  if (!values || Object.keys(items as object).some((keyword) => !quiet.has(keyword))) {
    throw new CannotExpress(at, 'uniqueItems', 'is asked of items that are not listed')
  }
  const different = [...new Set(values.map((value) => JSON.stringify(value)))]
  const { min, max } = boundsOf(context, schema, at, different.length)
  return { parts: different.map((value) => ({ expression: text(value), required: false })), min, max }
}

const quiet = new Set(['enum', 'const', 'type', 'title', 'description', 'default', 'examples'])
