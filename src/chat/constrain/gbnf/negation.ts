import { isRecord } from '../../../lib/is-record.ts'
import { CannotExpress } from '../conversion.ts'
import {
  type AnySchema,
  allTypes,
  declaredTypes,
  hasOnly,
  isSchema,
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
} from '../schema.ts'
import { isKnownFormat } from './strings.ts'

const conditionalKeywords = ['not', 'if', 'dependentRequired', 'dependentSchemas', 'dependencies'] as const

/** A schema without one of its conditional keywords: a value must match the rest and one of the alternatives. */
interface Expansion {
  readonly keyword: string
  readonly rest: JsonSchemaObject
  readonly alternatives: readonly AnySchema[]
}

type AreDisjoint = (one: AnySchema, other: AnySchema) => boolean

/** Replaces the first conditional keyword by alternatives; `undefined` if there is none. */
export function expandCondition(
  schema: JsonSchemaObject,
  flatten: (schema: AnySchema) => AnySchema,
  areDisjoint: AreDisjoint,
  at: string,
): Expansion | undefined {
  const keyword = conditionalKeywords.find((name) => schema[name] !== undefined)
  if (!keyword) return undefined
  const { [keyword]: condition, ...rest } = schema
  if (keyword === 'not') {
    // Exclude one alternative after the other.
    const [one, ...others] = isRecord(condition) && hasOnly(condition, 'anyOf') ? schemasIn(condition.anyOf) : []
    if (one !== undefined) {
      const left = others.length > 0 ? { ...rest, not: { anyOf: others } } : rest
      return { keyword, rest: left, alternatives: negate(flatten(one), rest, areDisjoint, at) }
    }
    const alternatives = negate(isSchema(condition) ? flatten(condition) : true, rest, areDisjoint, at)
    return { keyword, rest, alternatives }
  }
  if (keyword === 'if') {
    const { then = true, else: otherwise = true, ...others } = rest
    const alternatives = [{ allOf: [condition, then] }, { allOf: [{ not: condition }, otherwise] }]
    return { keyword, rest: others, alternatives }
  }
  const [first, ...further] = Object.entries(isRecord(condition) ? condition : {})
  if (!first) return { keyword, rest, alternatives: [true] }
  const [name, needed] = first
  const present = Array.isArray(needed)
    ? { required: [name, ...strings(needed)] }
    : { allOf: [{ required: [name] }, needed] }
  const others = further.length > 0 ? { ...rest, [keyword]: Object.fromEntries(further) } : rest
  return { keyword, rest: others, alternatives: [without(name), present] }
}

const without = (name: string): AnySchema => ({ properties: { [name]: false } })

/** Alternatives that together allow what a schema forbids, as far as `beside` allows it. */
function negate(schema: AnySchema, beside: JsonSchemaObject, areDisjoint: AreDisjoint, at: string): AnySchema[] {
  if (typeof schema === 'boolean') return schema ? [] : [true]
  const { not, ...conditional } = schema
  const inner = expandCondition(conditional, (one) => one, areDisjoint, at)
  if (inner) {
    const rest = not === undefined ? inner.rest : { ...inner.rest, not }
    return [{ not: rest }, { not: { anyOf: inner.alternatives } }]
  }
  const refuse = (keyword: string): never => {
    throw new CannotExpress(at, 'not', `contains ${keyword}, which cannot be negated`)
  }
  const possible = schemaTypes(beside) ?? allTypes
  const isPossible = (type: JsonType) => possible.includes(type) || (type === 'number' && possible.includes('integer'))
  const types = declaredTypes(schema)
  if (types?.includes('integer') && possible.includes('number')) refuse('type')
  const found: AnySchema[] = types ? [typesExcept(types)] : []
  const values = listedValues(schema)
  if (values?.some((value) => typeof value === 'object' && value !== null && isPossible(jsonTypeOf(value))))
    refuse('enum')
  if (values) found.push(...valuesExcept(values))
  for (const [keyword, value] of Object.entries(schema)) {
    const type = typeOfKeyword(keyword)
    if (type && !isPossible(type)) continue
    const opposite = opposites[keyword]
    if (opposite) found.push(...opposite(value).map((one) => (isRecord(one) && type ? { type, ...one } : one)))
    else if (keyword === 'additionalProperties') found.push(...membersExcept(schema, beside, refuse))
    else if (keyword === 'items' && isSchema(value)) {
      if (!areDisjoint(isSchema(beside.items) ? beside.items : true, value)) refuse(keyword)
      found.push({ type: 'array', minItems: 1 })
    } else if (type && !(keyword === 'format' && !isKnownFormat(value))) refuse(keyword)
  }
  return found
}

const typesExcept = (types: readonly JsonType[]): AnySchema => ({
  type: allTypes.filter(
    (type) => !types.includes(type) && !(type === 'integer' || (type === 'number' && types.includes('integer'))),
  ),
})

const escapeSign = (sign: string): string => `\\u{${sign.codePointAt(0)?.toString(16)}}`

/** Everything but these values. */
function valuesExcept(values: readonly unknown[]): AnySchema[] {
  const found = [typesExcept(values.map(jsonTypeOf))]
  const texts = strings(values).map((text) => text.replace(/[^A-Za-z0-9]/gu, escapeSign))
  if (texts.length > 0) found.push({ type: 'string', pattern: `^(?!(?:${texts.join('|')})$)` })
  const flags = values.filter((value) => typeof value === 'boolean')
  if (new Set(flags).size === 1) found.push({ const: !flags[0] })
  const numbers = values.filter((value) => typeof value === 'number').toSorted((one, other) => one - other)
  if (numbers.length > 0) {
    const gaps = [undefined, ...numbers].map((low, index) => ({
      type: 'number',
      ...(low !== undefined && { exclusiveMinimum: low }),
      ...(index < numbers.length && { exclusiveMaximum: numbers[index] }),
    }))
    found.push(...gaps)
  }
  return found
}

/** Objects with a member that `additionalProperties` forbids; only members that `beside` names are possible. */
function membersExcept(schema: JsonSchemaObject, beside: JsonSchemaObject, refuse: (keyword: string) => never) {
  const { additionalProperties: others, patternProperties } = schema
  if (!isSchema(others) || others === true) return []
  const { properties, required, additionalProperties, patternProperties: patterns } = beside
  const isOpen = isRecord(additionalProperties) || additionalProperties === true || patterns !== undefined
  const possible = new Set([...schemaEntries(properties).map(([name]) => name), ...strings(required)])
  if (isOpen || patternProperties !== undefined || possible.size === 0) refuse('additionalProperties')
  const known = new Set(schemaEntries(schema.properties).map(([name]) => name))
  return [...possible]
    .filter((name) => !known.has(name))
    .map((name) => ({ type: 'object', required: [name], properties: { [name]: { not: others } } }))
}

const numbers = (value: unknown, make: (value: number) => AnySchema): AnySchema[] =>
  numberIn(value) === undefined ? [] : [make(value as number)]

/** For each keyword, what violates it. */
const opposites: Readonly<Record<string, (value: unknown) => readonly AnySchema[]>> = {
  required: (value) => strings(value).map(without),
  properties: (value) =>
    schemaEntries(value).map(([name, one]) => ({ required: [name], properties: { [name]: { not: one } } })),
  minProperties: (value) => numbers(value, (count) => (count > 0 ? { maxProperties: count - 1 } : false)),
  maxProperties: (value) => numbers(value, (count) => ({ minProperties: count + 1 })),
  minItems: (value) => numbers(value, (count) => (count > 0 ? { maxItems: count - 1 } : false)),
  maxItems: (value) => numbers(value, (count) => ({ minItems: count + 1 })),
  minLength: (value) => numbers(value, (count) => (count > 0 ? { maxLength: count - 1 } : false)),
  maxLength: (value) => numbers(value, (count) => ({ minLength: count + 1 })),
  minimum: (value) => numbers(value, (bound) => ({ exclusiveMaximum: bound })),
  maximum: (value) => numbers(value, (bound) => ({ exclusiveMinimum: bound })),
  exclusiveMinimum: (value) => numbers(value, (bound) => ({ maximum: bound })),
  exclusiveMaximum: (value) => numbers(value, (bound) => ({ minimum: bound })),
  pattern: (value) => [{ pattern: `^(?![^]*(?:${value}))` }],
  anyOf: (value) => [{ not: { anyOf: value } }],
  oneOf: (value) => [
    { not: { anyOf: value } },
    ...schemasIn(value).flatMap((one, index) =>
      schemasIn(value)
        .slice(index + 1)
        .map((other) => ({ allOf: [one, other] })),
    ),
  ],
  not: (value) => (isSchema(value) ? [value] : []),
}
