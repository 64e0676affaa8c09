import { applicators, isListOfItems } from '../../core/schema-keywords.ts'
import { isRecord } from '../../lib/is-record.ts'

export type JsonSchemaObject = Readonly<Record<string, unknown>>

/** A JSON Schema: `true` allows everything, `false` nothing. */
export type AnySchema = JsonSchemaObject | boolean

export const isSchema = (value: unknown): value is AnySchema => typeof value === 'boolean' || isRecord(value)

/** The schemas in a list such as `anyOf`; empty if it is not a list. */
export const schemasIn = (value: unknown): readonly AnySchema[] => (Array.isArray(value) ? value.filter(isSchema) : [])

/** The schemas in a map such as `properties`. */
export const schemaEntries = (value: unknown): readonly (readonly [string, AnySchema])[] =>
  isRecord(value) ? Object.entries(value).filter((entry): entry is [string, AnySchema] => isSchema(entry[1])) : []

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

export const numberIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const listedValues = (schema: JsonSchemaObject): readonly unknown[] | undefined =>
  Object.hasOwn(schema, 'const') ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : undefined

/** Keywords that describe a schema without constraining values. */
export const annotationKeywords: readonly string[] = ['title', 'description', 'default', 'examples']

/** Keywords that neither constrain values nor describe them. */
export const declarationKeywords: readonly string[] = ['$defs', 'definitions', '$schema', '$id']

/** Whether a schema has no other keywords than these and those that only describe it. */
export const hasOnly = (schema: JsonSchemaObject, ...keywords: readonly string[]): boolean =>
  Object.keys(schema).every((name) => keywords.includes(name) || annotationKeywords.includes(name))

/** A table with the same value for each of these keywords. */
export const forKeywords = <Value>(value: Value, ...keywords: readonly string[]): Readonly<Record<string, Value>> =>
  Object.fromEntries(keywords.map((keyword) => [keyword, value]))

/** The JSON Schema types, in the order in which a grammar lists them as alternatives. */
export const allTypes = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'] as const

export type JsonType = (typeof allTypes)[number]

const keywordsOf: Readonly<Partial<Record<JsonType, readonly string[]>>> = {
  object: [
    ...['properties', 'required', 'propertyNames', 'minProperties', 'maxProperties'],
    ...['additionalProperties', 'patternProperties', 'unevaluatedProperties'],
  ],
  array: [
    ...['items', 'prefixItems', 'additionalItems', 'unevaluatedItems'],
    ...['minItems', 'maxItems', 'uniqueItems', 'contains'],
  ],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
}

/**
 * The types that a schema allows; `undefined` if it does not restrict them. Without `type`, keywords such as
 * `properties` imply a type, although the standard would also allow other types.
 */
export function schemaTypes(schema: JsonSchemaObject): readonly JsonType[] | undefined {
  const named = declaredTypes(schema)
  if (named) return named
  const implied = allTypes.filter((type) => keywordsOf[type]?.some((keyword) => keyword in schema))
  return implied.length > 0 ? implied : undefined
}

export function declaredTypes({ type }: JsonSchemaObject): readonly JsonType[] | undefined {
  const named = typeof type === 'string' ? [type] : strings(type)
  if (named.length === 0) return undefined
  const known = allTypes.filter((one) => named.includes(one))
  return known.includes('number') ? known.filter((one) => one !== 'integer') : known
}

/** The first `type` that JSON Schema does not define, such as `float` or `any`; `undefined` if there is none. */
export function undefinedType({ type }: JsonSchemaObject): unknown {
  if (type === undefined) return undefined
  return [type].flat().find((name) => !(allTypes as readonly unknown[]).includes(name))
}

/** The types in both lists. An integer is also a number. */
export function commonTypes(one: readonly JsonType[], other: readonly JsonType[]): readonly JsonType[] {
  const both = one.filter((type) => other.includes(type))
  const whole =
    !both.includes('number') &&
    ((one.includes('integer') && other.includes('number')) || (one.includes('number') && other.includes('integer')))
  return whole && !both.includes('integer') ? [...both, 'integer'] : both
}

export function jsonTypeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as JsonType
}

export function isOfType(value: unknown, types: readonly JsonType[]): boolean {
  const type = jsonTypeOf(value)
  return types.includes(type) || (type === 'integer' && types.includes('number'))
}

/** A copy with `change` applied to each direct subschema. */
export function mapSubschemas(schema: JsonSchemaObject, change: (inner: AnySchema) => AnySchema): JsonSchemaObject {
  const changed = (value: unknown) => (isSchema(value) ? change(value) : value)
  return mapMembers(schema, (keyword, value) => {
    const kind = Object.hasOwn(applicators, keyword) ? applicators[keyword] : undefined
    if (kind === 'map' && isRecord(value)) return mapMembers(value, (_name, inner) => changed(inner))
    if (isListOfItems(keyword, value) || (kind === 'list' && Array.isArray(value))) return value.map(changed)
    return kind === 'one' ? changed(value) : value
  })
}

const mapMembers = (object: JsonSchemaObject, change: (name: string, value: unknown) => unknown): JsonSchemaObject =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(name, value)]))
