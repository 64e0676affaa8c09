import { CannotExpress, step } from '../conversion.ts'
import {
  type AnySchema,
  isSchema,
  isSchemaObject,
  type JsonSchemaObject,
  namedSchemas,
  numberIn,
  strings,
} from '../schema.ts'
import { sequenceOf } from './arrays.ts'
import { complement, overlap, rawRanges } from './characters.ts'
import { listedValues } from './choices.ts'
import { all, any, type Expression, nothing, optional, set, text, times } from './expression.ts'
import { patternString } from './pattern.ts'
import { type ConversionDepth, type GrammarContext, maxKeyCharacters } from './rules.ts'

const colon = all(text(':'), optional(text(' ')))

/**
 * The objects that a schema allows: named members in schema order, and others only if the schema mentions additional
 * members or names none.
 */
export function objects(
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
  level: ConversionDepth,
): Expression | undefined {
  const required = new Set(strings(schema.required))
  const named = namedMembers(schema)
  if (named.length > 0 && hasRuleForNames(schema))
    throw new CannotExpress(at, 'propertyNames', 'cannot be combined with named properties')
  const parts: { readonly expression: Expression; readonly required: boolean }[] = []
  for (const [name, member] of named) {
    const value = context.convert(member, step(at, 'properties', name), level)
    if (!value && required.has(name)) return undefined
    if (!value) continue
    const pair = all(text(JSON.stringify(name)), colon, context.rules.define(name, value))
    parts.push({ expression: pair, required: required.has(name) })
  }
  const { min, max, most } = numberOfMembers(context, schema)
  const extra = additionalMember(context, schema, at, level)
  if (extra && min > parts.length + 1) {
    // A repeated name counts once.
    throw new CannotExpress(at, 'minProperties', 'requires more members than are named')
  }
  const row = sequenceOf(context.rules, 'members', { parts, min, max, extra: extra && { expression: extra, most } })
  return row && all(text('{'), row, text('}'))
}

function numberOfMembers(context: GrammarContext, schema: JsonSchemaObject) {
  const min = numberIn(schema.minProperties) ?? 0
  const max = numberIn(schema.maxProperties) ?? Number.POSITIVE_INFINITY
  return { min, max, most: Math.max(context.limits.members, min) }
}

/** Named members, including names that appear only in `required` or in an enum of `propertyNames`. */
function namedMembers(schema: JsonSchemaObject): readonly (readonly [string, AnySchema])[] {
  const named = new Map(namedSchemas(schema.properties))
  const others = isSchema(schema.additionalProperties) ? schema.additionalProperties : true
  const listed = isSchemaObject(schema.propertyNames) ? listedValues(schema.propertyNames) : undefined
  for (const name of [...strings(listed), ...strings(schema.required)]) if (!named.has(name)) named.set(name, others)
  return [...named].map(([name, member]) => [name, !listed || listed.includes(name) ? member : false])
}

/** A member that the schema does not name. */
function additionalMember(
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
  level: ConversionDepth,
): Expression | undefined {
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
  const key = value && additionalKeys(context, schema, at, level)
  return key && pairOf(context, key, value)
}

function patternPair(
  context: GrammarContext,
  schema: JsonSchemaObject,
  patterns: readonly (readonly [string, AnySchema])[],
  at: string,
  level: ConversionDepth,
): Expression | undefined {
  const [only, ...others] = patterns
  const alone =
    others.length === 0 && namedSchemas(schema.properties).length === 0 && schema.propertyNames === undefined
  if (!only || !alone || strings(schema.required).length > 0) {
    throw new CannotExpress(at, 'patternProperties', 'cannot be combined with other members')
  }
  const place = step(at, 'patternProperties', only[0])
  const value = context.convert(only[1], place, level)
  const key = value && patternKeys(context, only[0], place)
  return key && pairOf(context, key, value)
}

const pairOf = (context: GrammarContext, key: Expression, value: Expression): Expression =>
  context.rules.define('pair', all(key, colon, context.rules.define('value', value)))

/** Names for additional members, as JSON strings. */
function additionalKeys(
  context: GrammarContext,
  schema: JsonSchemaObject,
  at: string,
  level: ConversionDepth,
): Expression | undefined {
  const { propertyNames } = schema
  if (hasRuleForNames(schema))
    return context.convert({ type: 'string', ...(propertyNames as JsonSchemaObject) }, step(at, 'propertyNames'), level)
  return otherThan(
    context,
    namedSchemas(schema.properties).map(([name]) => name),
  )
}

/** Whether `propertyNames` is more than an enum. */
function hasRuleForNames({ propertyNames }: JsonSchemaObject): boolean {
  return (
    propertyNames === false ||
    (isSchemaObject(propertyNames) && !isTrivial(propertyNames) && !listedValues(propertyNames))
  )
}

const isTrivial = (schema: JsonSchemaObject): boolean =>
  Object.keys(schema).every((keyword) => keyword === 'type' || keyword === 'description' || keyword === 'title')

/** Names that match a pattern. */
function patternKeys(context: GrammarContext, pattern: string, at: string): Expression | undefined {
  const found = patternString(pattern, { min: 0, max: maxKeyCharacters }, at)
  return found && context.rules.define('key', found)
}

/** Whether a name needs no escaping. */
const isRaw = (name: string): boolean => JSON.stringify(name) === `"${name}"`

interface Branch {
  readonly branches: Map<string, Branch>
  isName: boolean
}

/** Any name except these. Excludes names that need escaping, so that each name has one spelling. */
function otherThan({ rules }: GrammarContext, names: readonly string[]): Expression {
  const root: Branch = { branches: new Map(), isName: true }
  for (const name of names.filter(isRaw)) {
    let branch = root
    for (const sign of name) {
      const next = branch.branches.get(sign) ?? { branches: new Map(), isName: false }
      branch.branches.set(sign, next)
      branch = next
    }
    branch.isName = true
  }
  const anySign = rules.define('key-char', set(rawRanges))
  const after = ({ branches, isName }: Branch): Expression => {
    const points = [...branches.keys()].map((sign) => sign.codePointAt(0) as number)
    const others = overlap(complement(points.map((point) => [point, point])), rawRanges)
    return any(
      isName ? undefined : nothing,
      ...[...branches].map(([sign, next]) => all(text(sign), after(next))),
      all(set(others), times(anySign, 0, maxKeyCharacters)),
    ) as Expression
  }
  return rules.define('key', all(text('"'), after(root), text('"')))
}
