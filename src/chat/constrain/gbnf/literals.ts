import { CannotExpress } from '../cannot-express.ts'
import { numberIn, type SchemaObject } from '../schema.ts'
import { isOfType, namedTypes } from '../types.ts'
import { any, type Expression, text } from './expression.ts'

/** The values that a schema lists, if it lists any. */
export function listedValues(schema: SchemaObject): readonly unknown[] | undefined {
  if (Object.hasOwn(schema, 'const')) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

/** The listed values that meet what else the schema says; `undefined` where none does. */
export function literals(values: readonly unknown[], schema: SchemaObject, at: string): Expression | undefined {
  for (const keyword of [
    'pattern',
    'format',
    'properties',
    'items',
    'multipleOf',
    'additionalProperties',
    'required',
  ]) {
    if (keyword in schema && !(keyword === 'required' && values.every((value) => typeof value !== 'object'))) {
      throw new CannotExpress(at, keyword, 'stands beside a list of values, which says it all')
    }
  }
  return any(...values.filter((value) => meets(value, schema)).map((value) => text(JSON.stringify(value))))
}

function meets(value: unknown, schema: SchemaObject): boolean {
  const types = namedTypes(schema)
  if (types && !isOfType(value, types)) return false
  const within = (size: number, low: string, high: string): boolean =>
    size >= (numberIn(schema[low]) ?? Number.NEGATIVE_INFINITY) &&
    size <= (numberIn(schema[high]) ?? Number.POSITIVE_INFINITY)
  if (typeof value === 'string') return within([...value].length, 'minLength', 'maxLength')
  if (typeof value !== 'number') return true
  const { exclusiveMinimum, exclusiveMaximum } = schema
  return (
    within(value, 'minimum', 'maximum') &&
    value > (numberIn(exclusiveMinimum) ?? Number.NEGATIVE_INFINITY) &&
    value < (numberIn(exclusiveMaximum) ?? Number.POSITIVE_INFINITY)
  )
}
