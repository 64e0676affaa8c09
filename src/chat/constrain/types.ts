import { type SchemaObject, strings } from './schema.ts'

/** The types that JSON Schema knows, as they are listed in an alternative. */
export const allTypes = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'] as const

export type Type = (typeof allTypes)[number]

const keywordsOf: Readonly<Partial<Record<Type, readonly string[]>>> = {
  object: [
    'properties',
    'required',
    'additionalProperties',
    'patternProperties',
    'propertyNames',
    'minProperties',
    'maxProperties',
    'unevaluatedProperties',
  ],
  array: [
    'items',
    'prefixItems',
    'additionalItems',
    'minItems',
    'maxItems',
    'uniqueItems',
    'contains',
    'unevaluatedItems',
  ],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
}

/**
 * The types that a schema allows; `undefined` where it says nothing. One that has keywords for a type but does not
 * name it surely means that type, although by the letter of the standard everything else would be allowed, too.
 */
export function typesOf(schema: SchemaObject): readonly Type[] | undefined {
  const named = namedTypes(schema)
  if (named) return named
  const meant = allTypes.filter((type) => keywordsOf[type]?.some((keyword) => keyword in schema))
  return meant.length > 0 ? meant : undefined
}

/** The types that a schema names; `undefined` where it names none. */
export function namedTypes({ type }: SchemaObject): readonly Type[] | undefined {
  const named = typeof type === 'string' ? [type] : strings(type)
  if (named.length === 0) return undefined
  const known = allTypes.filter((one) => named.includes(one))
  return known.includes('number') ? known.filter((one) => one !== 'integer') : known
}

/** A type that JSON Schema does not know, if a schema names one: `float`, `dict`, `any`. */
export function unknownType({ type }: SchemaObject): unknown {
  if (type === undefined) return undefined
  return [type].flat().find((name) => !(allTypes as readonly unknown[]).includes(name))
}

/** What two lists of types have in common; whole numbers are numbers. */
export function commonTypes(one: readonly Type[], other: readonly Type[]): readonly Type[] {
  const both = one.filter((type) => other.includes(type))
  const whole =
    !both.includes('number') &&
    ((one.includes('integer') && other.includes('number')) || (one.includes('number') && other.includes('integer')))
  return whole && !both.includes('integer') ? [...both, 'integer'] : both
}

/** The type of a value. */
export function typeOf(value: unknown): Type {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as Type
}

/** Whether a value is of one of these types. */
export function isOfType(value: unknown, types: readonly Type[]): boolean {
  const type = typeOf(value)
  return types.includes(type) || (type === 'integer' && types.includes('number'))
}
