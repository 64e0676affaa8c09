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
  typeOfKeyword,
  undefinedType,
} from '../schema.ts'
import { matchesPattern, plainPattern } from './automaton.ts'
import { arrayExpression, objectExpression, sequenceOf } from './containers.ts'
import { anyOf, character, type Expression, literal, maybe, sequence, stringOf } from './expression.ts'
import { expandCondition } from './negation.ts'
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
import { anchoredPattern, stringExpression, stringPattern } from './strings.ts'

/** Keywords that a grammar cannot enforce. Unknown keywords are allowed: the standard treats them as annotations. */
const inexpressibleKeywords = ['contains', '$dynamicRef', '$recursiveRef']

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
  const expansion = expandCondition(
    schema,
    (condition) => flat(context, condition, pointerStep(at, 'not')),
    (one, other) => areDisjoint(context, flat(context, one), flat(context, other)),
    at,
  )
  if (expansion) {
    const { keyword, rest, alternatives } = expansion
    // Keywords beside the condition may imply types, which alternatives must not extend.
    const typed = { ...rest, ...(schemaTypes(rest) && { type: schemaTypes(rest) }) }
    const place = pointerStep(at, keyword)
    return anyOf(...alternatives.map((one) => context.convert({ allOf: [typed, one] }, place, level)))
  }
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
  const rivals = whole.map((one) =>
    keyword === 'anyOf' ? [] : whole.filter((other) => other !== one && !areDisjoint(context, one, other)),
  )
  return anyOf(
    ...branches.map((branch, index) => {
      const others = rivals[index] ?? []
      const one = isAlone ? branch : (whole[index] as AnySchema)
      const exact = others.length > 0 ? { allOf: [one, { not: { anyOf: others } }] } : one
      return context.convert(exact, pointerStep(at, keyword, index), level)
    }),
  )
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
    if (type === 'string') return stringsExclude(context, written, other)
    return (type === 'integer' || type === 'number') && numbersExclude(written, other)
  })
}

function stringsExclude(context: GrammarContext, written: JsonSchemaObject, other: JsonSchemaObject): boolean {
  const isLonger = (long: JsonSchemaObject, short: JsonSchemaObject) =>
    (numberIn(long.minLength) ?? 0) > (numberIn(short.maxLength) ?? Number.POSITIVE_INFINITY)
  if (isLonger(written, other) || isLonger(other, written)) return true
  if (typeof other.pattern !== 'string') return false
  const [mine, theirs] = [stringPattern(written, ''), anchoredPattern(other.pattern, '')]
  try {
    return mine !== undefined && !plainPattern({ kind: 'and', parts: [mine, theirs] }, context.budget, '')
  } catch (error) {
    if (error instanceof CannotExpress) return false
    throw error
  }
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

/** The listed values that also match the other keywords; `undefined` if none of them does. */
function literals(values: readonly unknown[], schema: JsonSchemaObject, at: string): Expression | undefined {
  const possible = values.filter((value) => meets(value, schema))
  for (const keyword of Object.keys(schema)) {
    if (possible.some((value) => !canCheck(keyword, value, schema)))
      throw new CannotExpress(at, keyword, 'cannot be combined with enum or const')
  }
  return anyOf(...possible.map((value) => literal(JSON.stringify(value))))
}

/** Whether `meets` is sure about this keyword for this value. */
function canCheck(keyword: string, value: unknown, schema: JsonSchemaObject): boolean {
  const type = jsonTypeOf(value)
  if (typeOfKeyword(keyword) !== (type === 'integer' ? 'number' : type)) return true
  if (keyword === 'multipleOf') return Number.isInteger(schema.multipleOf) && type === 'integer'
  if (keyword !== 'format') return type !== 'object' && type !== 'array'
  const pattern = stringPattern({ format: schema.format }, '')
  return !pattern || matchesPattern(pattern, value as string)
}

/** Whether a value matches a schema's types, bounds and pattern. */
function meets(value: unknown, schema: JsonSchemaObject): boolean {
  const types = declaredTypes(schema)
  if (types && !isOfType(value, types)) return false
  const within = (size: number, low: string, high: string): boolean =>
    size >= (numberIn(schema[low]) ?? Number.NEGATIVE_INFINITY) &&
    size <= (numberIn(schema[high]) ?? Number.POSITIVE_INFINITY)
  if (typeof value === 'string') {
    const pattern = stringPattern({ pattern: schema.pattern }, '')
    return within([...value].length, 'minLength', 'maxLength') && (!pattern || matchesPattern(pattern, value))
  }
  if (typeof value !== 'number') return true
  const { exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (Number.isInteger(multipleOf) && Number.isInteger(value) && value % (multipleOf as number) !== 0) return false
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
      const place = originOf(looser, error)
      if (!place) throw error
      dropped.push(place)
      looser = withoutKeyword(looser, place.at, place.keyword)
    }
  }
}

/** Keywords that lead to parts that the schema does not contain as such, because they were merged. */
const originKeywords = [
  '$ref',
  'not',
  'if',
  'dependencies',
  'dependentSchemas',
  'dependentRequired',
  'oneOf',
  'anyOf',
  'allOf',
]

/** The keyword to drop because of an error: the one that it names, or the closest one that led there. */
function originOf(schema: AnySchema, { at, keyword }: CannotExpress) {
  const names = at.split('/').slice(1).map(unescapeStep)
  for (let length = names.length; length >= 0; length--) {
    const place = valueAt(schema, names.slice(0, length))
    const candidates = length === names.length ? [keyword, ...originKeywords] : originKeywords
    const found = isRecord(place) ? candidates.find((name) => Object.hasOwn(place, name)) : undefined
    if (found) return { at: pointerStep('', ...names.slice(0, length)), keyword: found }
  }
  return undefined
}

/** A copy of the schema without the keyword at this position. */
function withoutKeyword(schema: AnySchema, at: string, keyword: string): AnySchema {
  const names = at.split('/').slice(1).map(unescapeStep)
  const { [keyword]: dropped, ...fields } = valueAt(schema, names) as Record<string, unknown>
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
