import { CannotExpress, step } from '../cannot-express.ts'
import { isSchema, isSchemaObject, namedSchemas, numberIn, type Schema, type SchemaObject, strings } from '../schema.ts'
import type { Context, Level } from './context.ts'
import { all, type Expression, optional, text } from './expression.ts'
import { freeKeys, hasRuleForNames, patternKeys } from './keys.ts'
import { listedValues } from './literals.ts'
import { rowOf } from './rows.ts'

const colon = all(text(':'), optional(text(' ')))

/**
 * The objects that a schema allows: the members that it names, in its order, and others only where it says so or names
 * none. What a schema neither names nor forbids is not written, as models are asked for what is named.
 */
export function objects(context: Context, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  const required = new Set(strings(schema.required))
  const named = namedMembers(schema)
  if (named.length > 0 && hasRuleForNames(schema))
    throw new CannotExpress(at, 'propertyNames', 'stands beside named members')
  const parts: { readonly expression: Expression; readonly required: boolean }[] = []
  for (const [name, member] of named) {
    const value = context.convert(member, step(at, 'properties', name), level)
    if (!value && required.has(name)) return undefined
    if (!value) continue
    const pair = all(text(JSON.stringify(name)), colon, context.rules.define(name, value))
    parts.push({ expression: pair, required: required.has(name) })
  }
  const { min, max, most } = numberOfMembers(context, schema)
  const extra = freePair(context, schema, at, level)
  if (extra && min > parts.length + 1) {
    // A name that is written twice counts once.
    throw new CannotExpress(at, 'minProperties', 'asks for several members without saying their names')
  }
  const row = rowOf(context.rules, 'members', { parts, min, max, extra: extra && { expression: extra, most } })
  return row && all(text('{'), row, text('}'))
}

function numberOfMembers(context: Context, schema: SchemaObject) {
  const min = numberIn(schema.minProperties) ?? 0
  const max = numberIn(schema.maxProperties) ?? Number.POSITIVE_INFINITY
  return { min, max, most: Math.max(context.limits.members, min) }
}

/** Members that are named, also those that are only required or that a list of names allows. */
function namedMembers(schema: SchemaObject): readonly (readonly [string, Schema])[] {
  const named = new Map(namedSchemas(schema.properties))
  const others = isSchema(schema.additionalProperties) ? schema.additionalProperties : true
  const listed = isSchemaObject(schema.propertyNames) ? listedValues(schema.propertyNames) : undefined
  for (const name of [...strings(listed), ...strings(schema.required)]) if (!named.has(name)) named.set(name, others)
  return [...named].map(([name, member]) => [name, !listed || listed.includes(name) ? member : false])
}

/** A member that the schema does not name. */
function freePair(context: Context, schema: SchemaObject, at: string, level: Level): Expression | undefined {
  const { additionalProperties, unevaluatedProperties, propertyNames } = schema
  const patterns = namedSchemas(schema.patternProperties)
  if (patterns.length > 0) return patternPair(context, schema, patterns, at, level)
  if (isSchemaObject(propertyNames) && listedValues(propertyNames)) return undefined
  const said = isSchema(additionalProperties)
    ? additionalProperties
    : unevaluatedProperties === false
      ? false
      : undefined
  const others = said ?? (schema.properties === undefined && strings(schema.required).length === 0)
  const value = context.convert(others, step(at, 'additionalProperties'), level)
  const key = value && freeKeys(context, schema, at, level)
  return key && pairOf(context, key, value)
}

function patternPair(
  context: Context,
  schema: SchemaObject,
  patterns: readonly (readonly [string, Schema])[],
  at: string,
  level: Level,
): Expression | undefined {
  const [only, ...others] = patterns
  const alone =
    others.length === 0 && namedSchemas(schema.properties).length === 0 && schema.propertyNames === undefined
  if (!only || !alone || strings(schema.required).length > 0) {
    throw new CannotExpress(at, 'patternProperties', 'stands beside other members')
  }
  const place = step(at, 'patternProperties', only[0])
  const value = context.convert(only[1], place, level)
  const key = value && patternKeys(context, only[0], place)
  return key && pairOf(context, key, value)
}

const pairOf = (context: Context, key: Expression, value: Expression): Expression =>
  context.rules.define('pair', all(key, colon, context.rules.define('value', value)))
