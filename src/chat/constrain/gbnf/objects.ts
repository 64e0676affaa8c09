import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress, pointerStep } from '../conversion.ts'
import {
  type AnySchema,
  isSchema,
  type JsonSchemaObject,
  listedValues,
  numberIn,
  schemaEntries,
  strings,
} from '../schema.ts'
import { sequenceOf } from './arrays.ts'
import {
  anyOf,
  charSet,
  complement,
  type Expression,
  intersectRanges,
  literal,
  maybe,
  noText,
  rawRanges,
  sequence,
  times,
} from './expression.ts'
import { type Conversion, type GrammarContext, maxKeyCharacters } from './rules.ts'
import { patternString } from './strings.ts'

const colon = sequence(literal(':'), maybe(literal(' ')))

/** Objects with named members in schema order; other members only if the schema mentions them or names none. */
export const objectExpression: Conversion = (context, schema, at, level) => {
  const required = new Set(strings(schema.required))
  const named = namedMembers(schema)
  if (named.length > 0 && hasRuleForNames(schema))
    throw new CannotExpress(at, 'propertyNames', 'cannot be combined with named properties')
  const parts: { readonly expression: Expression; readonly required: boolean }[] = []
  for (const [name, member] of named) {
    const value = context.convert(member, pointerStep(at, 'properties', name), level)
    if (!value && required.has(name)) return undefined
    if (!value) continue
    const pair = sequence(literal(JSON.stringify(name)), colon, context.rules.define(name, value))
    parts.push({ expression: pair, required: required.has(name) })
  }
  const min = numberIn(schema.minProperties) ?? 0
  const max = numberIn(schema.maxProperties) ?? Number.POSITIVE_INFINITY
  const extra = additionalMember(context, schema, at, level)
  if (extra && min > parts.length + 1) {
    // The grammar cannot prevent duplicate names, which count as one member, so it cannot guarantee the minimum.
    throw new CannotExpress(at, 'minProperties', 'requires more members than properties lists')
  }
  const others = extra && { expression: extra, max: Math.max(context.limits.members, min) }
  const row = sequenceOf(context.rules, 'members', { parts, min, max, extra: others })
  return row && sequence(literal('{'), row, literal('}'))
}

/** Named members, including names that appear only in `required` or in an enum of `propertyNames`. */
function namedMembers(schema: JsonSchemaObject): readonly (readonly [string, AnySchema])[] {
  const named = new Map(schemaEntries(schema.properties))
  const others = isSchema(schema.additionalProperties) ? schema.additionalProperties : true
  const listed = isRecord(schema.propertyNames) ? listedValues(schema.propertyNames) : undefined
  for (const name of [...strings(listed), ...strings(schema.required)]) if (!named.has(name)) named.set(name, others)
  return [...named].map(([name, member]) => [name, !listed || listed.includes(name) ? member : false])
}

/** A member that the schema does not name. */
const additionalMember: Conversion = (context, schema, at, level) => {
  const { additionalProperties, unevaluatedProperties, propertyNames } = schema
  if (schemaEntries(schema.patternProperties).length > 0) return patternPair(context, schema, at, level)
  if (isRecord(propertyNames) && listedValues(propertyNames)) return undefined
  const isOpen =
    unevaluatedProperties !== false && schema.properties === undefined && strings(schema.required).length === 0
  const others = isSchema(additionalProperties) ? additionalProperties : isOpen
  const value = context.convert(others, pointerStep(at, 'additionalProperties'), level)
  const key = value && additionalKeys(context, schema, at, level)
  return key && pairOf(context, key, value)
}

const patternPair: Conversion = (context, schema, at, level) => {
  const [only, ...others] = schemaEntries(schema.patternProperties)
  const alone =
    others.length === 0 && schemaEntries(schema.properties).length === 0 && schema.propertyNames === undefined
  if (!only || !alone || strings(schema.required).length > 0) {
    throw new CannotExpress(at, 'patternProperties', 'cannot be combined with other members')
  }
  const place = pointerStep(at, 'patternProperties', only[0])
  const value = context.convert(only[1], place, level)
  const key = value && patternString(only[0], { min: 0, max: maxKeyCharacters }, place)
  return key && pairOf(context, context.rules.define('key', key), value)
}

const pairOf = (context: GrammarContext, key: Expression, value: Expression): Expression =>
  context.rules.define('pair', sequence(key, colon, context.rules.define('value', value)))

/** Names for additional members, as JSON strings. */
const additionalKeys: Conversion = (context, schema, at, level) => {
  if (!hasRuleForNames(schema)) return otherThan(context, new Map(schemaEntries(schema.properties)).keys())
  const names = { type: 'string', ...(schema.propertyNames as JsonSchemaObject) }
  return context.convert(names, pointerStep(at, 'propertyNames'), level)
}

/** Whether `propertyNames` restricts the names with anything other than an enum. */
const hasRuleForNames = ({ propertyNames }: JsonSchemaObject): boolean =>
  propertyNames === false || (isRecord(propertyNames) && !isTrivial(propertyNames) && !listedValues(propertyNames))

const isTrivial = (schema: JsonSchemaObject): boolean =>
  Object.keys(schema).every((keyword) => keyword === 'type' || keyword === 'description' || keyword === 'title')

interface Branch {
  readonly branches: Map<string, Branch>
  isName: boolean
}

/** Any name except these. Names that need escaping are also excluded, so that each name has only one spelling. */
function otherThan({ rules }: GrammarContext, names: Iterable<string>): Expression {
  const root: Branch = { branches: new Map(), isName: true }
  for (const name of names) {
    if (JSON.stringify(name) !== `"${name}"`) continue
    let branch = root
    for (const sign of name) {
      const next = branch.branches.get(sign) ?? { branches: new Map(), isName: false }
      branch.branches.set(sign, next)
      branch = next
    }
    branch.isName = true
  }
  const anySign = rules.define('key-char', charSet(rawRanges))
  const after = ({ branches, isName }: Branch): Expression => {
    const points = [...branches.keys()].map((sign) => sign.codePointAt(0) as number)
    const others = intersectRanges(complement(points.map((point) => [point, point])), rawRanges)
    return anyOf(
      isName ? undefined : noText,
      ...[...branches].map(([sign, next]) => sequence(literal(sign), after(next))),
      sequence(charSet(others), times(anySign, 0, maxKeyCharacters)),
    ) as Expression
  }
  return rules.define('key', sequence(literal('"'), after(root), literal('"')))
}
