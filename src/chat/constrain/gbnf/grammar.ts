import { unescapeStep, valueAt } from '../../../json/json-pointer.ts'
import { isRecord } from '../../../lib/is-record.ts'
import {
  CannotExpress,
  createWorkBudget,
  memoizeByContent,
  pointerStep,
  stepsPerSchema,
  type WorkBudget,
} from '../conversion.ts'
import { createFlatten, findCycles, isSameJson, mergeSchemas, resolve } from '../references.ts'
import {
  type AnySchema,
  allTypes,
  commonTypes,
  declarationKeywords,
  declaredTypes,
  hasOnly,
  isOfType,
  type JsonSchemaObject,
  type JsonType,
  jsonTypeOf,
  listedValues,
  numberIn,
  schemaEntries,
  schemasIn,
  schemaTypes,
  strings,
  undefinedType,
} from '../schema.ts'
import { arrayExpression, objectExpression, sequenceOf } from './containers.ts'
import { anyOf, character, type Expression, literal, maybe, sequence, stringOf } from './expression.ts'
import { anyNumber, integerExpression, numberExpression } from './numbers.ts'
import {
  type Conversion,
  type ConversionDepth,
  defaultGrammarLimits,
  type GrammarContext,
  type GrammarLimits,
  GrammarRules,
  maxKeyCharacters,
} from './rules.ts'
import { stringExpression } from './strings.ts'

/** Keywords that a grammar cannot enforce. Unknown keywords are allowed: the standard treats them as annotations. */
const inexpressibleKeywords = [
  ...['not', 'if', 'dependentRequired', 'dependentSchemas', 'dependencies'],
  ...['contains', '$dynamicRef', '$recursiveRef'],
]

const maxGrammarDepth = 64

/**
 * Converts a schema to a GBNF grammar that produces only valid JSON for it. The grammar may allow less than the schema:
 * strings, arrays and recursion are bounded, members come in schema order, and additional members are allowed only if
 * the schema asks for them. Throws `CannotExpress` for a keyword that cannot be enforced, instead of ignoring it.
 */
export function toGrammar(
  schema: AnySchema,
  limits: GrammarLimits = defaultGrammarLimits,
  budget: WorkBudget = createWorkBudget(),
): string {
  const rules = new GrammarRules()
  const references = new Map<string, Expression | undefined>()
  const flatten = createFlatten(schema, budget)
  const context: GrammarContext = { budget, flatten, limits, rules, cycles: findCycles(schema, budget), convert }
  const root = convert(schema, '', { nesting: 0, recursion: limits.recursion })
  if (!root) throw new CannotExpress('', 'the schema', 'allows no finite value')
  return rules.grammar(root)

  function convert(subschema: AnySchema, at: string, level: ConversionDepth): Expression | undefined {
    if (level.nesting > maxGrammarDepth) throw new CannotExpress(at, 'the schema', 'nests too deeply')
    budget.spend(stepsPerSchema, at)
    if (subschema === false) return undefined
    const inner = { ...level, nesting: level.nesting + 1 }
    if (subschema === true) return anyValue(context)
    if (typeof subschema.$ref === 'string' && hasOnly(subschema, '$ref', ...declarationKeywords))
      return referred(subschema.$ref, at, inner)
    const flat = flatten(subschema, at)
    return isRecord(flat) ? convertFlat(context, flat, at, inner) : convert(flat, at, inner)
  }

  function referred(reference: string, at: string, level: ConversionDepth): Expression | undefined {
    const target = resolve(schema, reference, at)
    const isCycle = context.cycles.has(reference)
    if (isCycle && level.recursion === 0) return undefined
    const key = `${level.recursion} ${reference}`
    if (!references.has(key)) {
      const recursion = level.recursion - Number(isCycle)
      const found = convert(target, reference.slice(1), { nesting: isCycle ? 0 : level.nesting, recursion })
      references.set(key, found && rules.define(reference.split('/').at(-1) as string, found))
    }
    return references.get(key)
  }
}

const convertFlat: Conversion = (context, schema, at, level) => {
  for (const keyword of inexpressibleKeywords) {
    if (schema[keyword] !== undefined) throw new CannotExpress(at, keyword, 'is not supported in a grammar')
  }
  const unknown = undefinedType(schema)
  if (unknown !== undefined)
    throw new CannotExpress(at, 'type', `names ${JSON.stringify(unknown)}, which is not a JSON Schema type`)
  if (schema.anyOf !== undefined || schema.oneOf !== undefined) return choiceExpression(context, schema, at, level)
  const values = listedValues(schema)
  if (values) return literals(values, schema, at)
  const types = schemaTypes(schema)
  return types ? anyOf(...types.map((type) => byType[type](context, schema, at, level))) : anyValue(context)
}

const defineRule = (context: GrammarContext, hint: string, found: Expression | undefined): Expression | undefined =>
  found && context.rules.define(hint, found)

const byType: Readonly<Record<JsonType, Conversion>> = {
  object: objectExpression,
  array: arrayExpression,
  string: stringExpression,
  integer: (context, schema, at) => defineRule(context, 'integer', integerExpression(schema, at)),
  number: (context, schema, at) => defineRule(context, 'number', numberExpression(schema, at)),
  boolean: () => anyOf(literal('true'), literal('false')),
  null: () => literal('null'),
}

/** Any JSON value up to this depth. */
function anyValue(context: GrammarContext, depth = context.limits.freeDepth): Expression {
  const { rules, limits } = context
  const sign = rules.define('char', character)
  const scalar = anyOf(
    rules.define('string', stringOf(sign, 0, limits.string)),
    rules.define('number', anyNumber),
    ...['true', 'false', 'null'].map(literal),
  ) as Expression
  if (depth === 0) return rules.define('scalar', scalar)
  const inner = anyValue(context, depth - 1)
  const key = rules.define('name', stringOf(sign, 1, maxKeyCharacters))
  const pair = rules.define('pair', sequence(key, literal(':'), maybe(literal(' ')), inner))
  const listOf = (expression: Expression, max: number) =>
    sequenceOf(rules, 'row', { parts: [], extra: { expression, max }, min: 0, max }) as Expression
  return rules.define(
    'any',
    anyOf(
      scalar,
      sequence(literal('['), listOf(inner, limits.items), literal(']')),
      sequence(literal('{'), listOf(pair, limits.members), literal('}')),
    ) as Expression,
  )
}

/** Maximum number of branches. Nested choices multiply this number. */
const maxBranches = 256

/** Converts `anyOf` or `oneOf`. Each branch is merged with the keywords next to the choice. */
const choiceExpression: Conversion = (context, schema, at, level) => {
  const keyword = schema.anyOf === undefined ? 'oneOf' : 'anyOf'
  const { [keyword]: options, ...beside } = schema
  const branches = schemasIn(options)
  if (branches.length > maxBranches) throw new CannotExpress(at, keyword, 'has too many branches')
  const isAlone = hasOnly(beside, ...declarationKeywords)
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
    const listed = listedValues(other)
    context.budget.spend(values.length * (1 + (listed?.length ?? 0)))
    const isListed = (value: unknown) => listed?.some((one) => isSameJson(one, value)) ?? true
    return !values.some((value) => isListed(value) && meets(value, other))
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
function literals(values: readonly unknown[], schema: JsonSchemaObject, at: string): Expression | undefined {
  for (const keyword of uncheckable) {
    if (keyword in schema && !(keyword === 'required' && values.every((value) => typeof value !== 'object'))) {
      throw new CannotExpress(at, keyword, 'cannot be combined with enum or const')
    }
  }
  return anyOf(...values.filter((value) => meets(value, schema)).map((value) => literal(JSON.stringify(value))))
}

/** Whether a value matches a schema's types and bounds. */
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

/** Give up on a schema after dropping this many keywords. */
const maxDropped = 32

/**
 * The strictest possible grammar, cached by content. Keywords that cannot be expressed are dropped, so that one unusual
 * tool does not prevent a grammar for all tools. Throws `CannotExpress` if dropping does not help.
 */
export const bestGrammar = memoizeByContent((schema: AnySchema) => findBestGrammar(schema))

/** The same without the cache. */
export function findBestGrammar(schema: AnySchema, budget: WorkBudget = createWorkBudget()) {
  /** Keywords that must be checked after generation. Empty if the grammar enforces the whole schema. */
  const dropped: { at: string; keyword: string }[] = []
  let looser = schema
  for (;;) {
    try {
      return { gbnf: toGrammar(looser, undefined, budget), dropped }
    } catch (error) {
      if (!(error instanceof CannotExpress) || dropped.length >= maxDropped) throw error
      const next = withoutKeyword(looser, error.at, error.keyword)
      if (next === undefined) throw error
      dropped.push({ at: error.at, keyword: error.keyword })
      looser = next
    }
  }
}

/** A copy of the schema without the keyword at this position; `undefined` if the keyword is not there. */
function withoutKeyword(schema: AnySchema, at: string, keyword: string): AnySchema | undefined {
  const names = at.split('/').slice(1).map(unescapeStep)
  const place = valueAt(schema, names)
  if (!isRecord(place) || !Object.hasOwn(place, keyword)) return undefined
  const { [keyword]: dropped, ...fields }: Record<string, unknown> = place
  // Turn `oneOf` into `anyOf`: overlapping branches are better than no branches.
  if (keyword === 'oneOf' && fields.anyOf === undefined) fields.anyOf = dropped
  return replaceAt(schema, names, fields) as AnySchema
}

/** A copy with another value at this position. It shares everything else with the original. */
function replaceAt(place: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  const inner = replaceAt((place as JsonSchemaObject)[name], rest, value)
  return Array.isArray(place) ? place.with(Number(name), inner) : { ...(place as object), [name]: inner }
}
