import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress, pointerStep } from '../conversion.ts'
import { mergeSchemas } from '../flatten.ts'
import {
  type AnySchema,
  allTypes,
  commonTypes,
  declaredTypes,
  isOfType,
  type JsonSchemaObject,
  jsonTypeOf,
  listedValues,
  numberIn,
  schemaEntries,
  schemasIn,
  schemaTypes,
  strings,
} from '../schema.ts'
import { anyOf, type Expression, literal } from './expression.ts'
import type { Conversion, GrammarContext } from './rules.ts'

/** Maximum number of branches. Nested choices multiply this number. */
const maxBranches = 256

/** Converts `anyOf` or `oneOf`. Each branch is merged with the keywords next to the choice. */
export const choiceExpression: Conversion = (context, schema, at, level) => {
  const keyword = schema.anyOf === undefined ? 'oneOf' : 'anyOf'
  const { [keyword]: options, ...beside } = schema
  const branches = schemasIn(options)
  if (branches.length > maxBranches) throw new CannotExpress(at, keyword, 'has too many branches')
  const isAlone = Object.keys(beside).every((name) => annotationKeywords.has(name))
  const whole = branches.map((branch, index) => {
    const place = pointerStep(at, keyword, index)
    return mergeSchemas(beside, flat(context, branch, place), place)
  })
  if (keyword === 'oneOf') refuseOverlaps(context, whole, at)
  return anyOf(
    ...branches.map((branch, index) =>
      context.convert(isAlone ? branch : (whole[index] as AnySchema), pointerStep(at, keyword, index), level),
    ),
  )
}

const annotationKeywords = new Set([
  'title',
  'description',
  'default',
  'examples',
  '$defs',
  'definitions',
  '$schema',
  '$id',
])

/** Throws if branches of a `oneOf` may overlap, because a value must match exactly one of them. */
function refuseOverlaps(context: GrammarContext, branches: readonly AnySchema[], at: string): void {
  for (const [index, one] of branches.entries()) {
    for (const [place, other] of branches.entries()) {
      if (index === place || areDisjoint(context, one, other)) continue
      throw new CannotExpress(at, 'oneOf', `has branches that may overlap (${index} and ${place})`)
    }
  }
}

/** Whether no value generated for one flat schema can match the other. False if that is uncertain. */
function areDisjoint(context: GrammarContext, written: AnySchema, other: AnySchema, depth = 0): boolean {
  if (written === false || other === false) return true
  if (written === true || other === true || depth > 4) return false
  const values = listedValues(written)
  if (values) {
    context.budget.spend(values.length * (1 + (listedValues(other)?.length ?? 0)))
    return values.every((value) => isRefused(value, other))
  }
  const mine = schemaTypes(written)
  const theirs = declaredTypes(other) ?? declaredTypes({ type: listedValues(other)?.map(jsonTypeOf) }) ?? allTypes
  if (!mine) return false
  const common = commonTypes(mine, theirs)
  if (common.length === 0) return true
  return common.every((type) => {
    if (type === 'object') return objectsExclude(context, written, other, depth)
    return (type === 'integer' || type === 'number') && numbersExclude(written, other)
  })
}

function isRefused(value: unknown, schema: JsonSchemaObject): boolean {
  const listed = listedValues(schema)
  if (listed && !listed.some((one) => JSON.stringify(one) === JSON.stringify(value))) return true
  const types = declaredTypes(schema)
  return types !== undefined && !isOfType(value, types)
}

function numbersExclude(one: JsonSchemaObject, other: JsonSchemaObject): boolean {
  const below = (low: JsonSchemaObject, high: JsonSchemaObject): boolean => {
    const top = numberIn(low.maximum) ?? numberIn(low.exclusiveMaximum)
    const bottom = numberIn(high.minimum) ?? numberIn(high.exclusiveMinimum)
    return top !== undefined && bottom !== undefined && top < bottom
  }
  return below(one, other) || below(other, one)
}

/** Whether no object matches both schemas: one requires a property that the other forbids or limits to other values. */
function objectsExclude(context: GrammarContext, written: JsonSchemaObject, other: JsonSchemaObject, depth: number) {
  const [mine, theirs] = [new Map(schemaEntries(written.properties)), new Map(schemaEntries(other.properties))]
  const isClosed = !isOpenObject(written.additionalProperties) && written.patternProperties === undefined
  const always = new Set(strings(written.required))
  context.budget.spend(mine.size + theirs.size + always.size)
  const neverWritten = (name: string) => isClosed && !mine.has(name) && !always.has(name)
  if (written.properties !== undefined && strings(other.required).some(neverWritten)) return true
  return [...always].some((name) => {
    const value = theirs.get(name)
    if (value === undefined) return other.additionalProperties === false && other.patternProperties === undefined
    return areDisjoint(context, flat(context, mine.get(name) ?? true), flat(context, value), depth + 1)
  })
}

const isOpenObject = (additional: unknown): boolean => additional === true || isRecord(additional)

const flat = (context: GrammarContext, schema: AnySchema, at = ''): AnySchema =>
  isRecord(schema) ? context.flatten(schema, at) : schema

/** Keywords that are not checked for listed values. */
const uncheckable = ['pattern', 'format', 'properties', 'items', 'multipleOf', 'additionalProperties', 'required']

/** The listed values that also match the other keywords; `undefined` if none of them does. */
export function literals(values: readonly unknown[], schema: JsonSchemaObject, at: string): Expression | undefined {
  for (const keyword of uncheckable) {
    if (keyword in schema && !(keyword === 'required' && values.every((value) => typeof value !== 'object'))) {
      throw new CannotExpress(at, keyword, 'cannot be combined with enum or const')
    }
  }
  return anyOf(...values.filter((value) => meets(value, schema)).map((value) => literal(JSON.stringify(value))))
}

function meets(value: unknown, schema: JsonSchemaObject): boolean {
  const types = declaredTypes(schema)
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
