import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress, pointerStep } from '../conversion.ts'
import {
  type AnySchema,
  hasOnly,
  isSchema,
  type JsonSchemaObject,
  listedValues,
  numberIn,
  schemaEntries,
  schemasIn,
  strings,
} from '../schema.ts'
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
import {
  type Conversion,
  type ConversionDepth,
  type GrammarContext,
  type GrammarRules,
  maxKeyCharacters,
  maxUnrolledItems,
} from './rules.ts'
import { patternString } from './strings.ts'

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
  if (!values || !hasOnly(items as JsonSchemaObject, 'enum', 'const', 'type')) {
    throw new CannotExpress(at, 'uniqueItems', 'requires items with an enum')
  }
  const different = [...new Set(values.map((value) => JSON.stringify(value)))]
  const { min, max } = boundsOf(context, schema, at, different.length)
  return { parts: different.map((value) => ({ expression: literal(value), required: false })), min, max }
}

interface SequencePart {
  readonly expression: Expression
  readonly required: boolean
}

/** Comma-separated parts in a fixed order, some of them optional. */
interface ElementSequence {
  readonly parts: readonly SequencePart[]
  /** An element that may follow the parts, up to `max` times. */
  readonly extra?: { readonly expression: Expression; readonly max: number } | undefined
  /** Minimum and maximum number of elements in total. */
  readonly min: number
  readonly max: number
}

const comma = sequence(literal(','), maybe(literal(' ')))

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
    const { expression, required } = parts[index] as SequencePart
    const one = count > 0 ? sequence(comma, expression) : expression
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
    const next = sequence(comma, extra.expression)
    if (count > 0) return times(next, low, high)
    const some = sequence(extra.expression, times(next, Math.max(0, low - 1), high - 1))
    return low === 0 ? maybe(some) : some
  }

  return min > max ? undefined : from(0, 0)
}

const colon = sequence(literal(':'), maybe(literal(' ')))

/** Objects with named members in schema order; other members only if the schema mentions them or names none. */
export const objectExpression: Conversion = (context, schema, at, level) => {
  const required = new Set(strings(schema.required))
  const named = namedMembers(schema)
  if (named.length > 0 && hasRuleForNames(schema))
    throw new CannotExpress(at, 'propertyNames', 'cannot be combined with named properties')
  const parts: SequencePart[] = []
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
  propertyNames === false ||
  (isRecord(propertyNames) && !hasOnly(propertyNames, 'type') && !listedValues(propertyNames))

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
