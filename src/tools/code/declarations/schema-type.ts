import type { Allowance } from './allowance.ts'
import { arrayType } from './array-type.ts'
import { literalType } from './literal.ts'
import { objectType } from './object-type.ts'
import type { Place } from './place.ts'
import { referred } from './reference.ts'
import { isSchema, listOf, type Schema } from './schema.ts'
import { atom, intersection, type Type, union, unknownType } from './type.ts'

/** Deeper than this nobody reads, and parsers of types have stacks. */
const deepest = 8
const maxValues = 50

/** The TypeScript type of what a JSON Schema allows, as near as a type can say it. Whatever the schema: it is a type. */
export function schemaType(schema: unknown, place: Place): Type {
  if (schema === false) return atom('never')
  if (!isSchema(schema) || place.depth > deepest || place.allowance.spent) return unknownType
  place.allowance.spend(2)
  const inner = { ...place, depth: place.depth + 1 }
  const parts = [
    ...('$ref' in schema ? [referredType(schema.$ref, inner)] : []),
    valueType(schema, inner),
    ...(['anyOf', 'oneOf'] as const).flatMap((keyword) => choice(schema[keyword], inner)),
    ...each(schema.allOf, inner),
  ]
  const type = intersection(parts)
  return schema.nullable === true ? union([type, atom('null')]) : type
}

function referredType(reference: unknown, place: Place): Type {
  if (typeof reference !== 'string' || place.through.includes(reference)) return unknownType
  return schemaType(referred(place.root, reference), { ...place, through: [...place.through, reference] })
}

/** What the schema itself says about the value, apart from the schemas that it is put together from. */
function valueType(schema: Schema, place: Place): Type {
  const { allowance } = place
  if ('const' in schema) return constants([schema.const], allowance) ?? namedTypes(schema, place)
  const values = listOf(schema.enum)
  if (values.length > 0 && values.length <= maxValues) return constants(values, allowance) ?? namedTypes(schema, place)
  return namedTypes(schema, place)
}

function constants(values: readonly unknown[], allowance: Allowance): Type | undefined {
  const types: Type[] = []
  for (const value of values) {
    const text = literalType(value, allowance)
    if (text === undefined) return undefined
    types.push(atom(text))
  }
  return union(types)
}

function namedTypes(schema: Schema, place: Place): Type {
  const named = typeof schema.type === 'string' ? [schema.type] : listOf(schema.type).slice(0, 7)
  return union((named.length > 0 ? named : implied(schema)).map((name) => namedType(name, schema, place)))
}

/** Many schemas leave out what goes without saying. */
function implied(schema: Schema): readonly string[] {
  if (['properties', 'additionalProperties', 'patternProperties'].some((keyword) => keyword in schema))
    return ['object']
  return 'items' in schema || 'prefixItems' in schema ? ['array'] : []
}

function namedType(name: unknown, schema: Schema, place: Place): Type {
  switch (name) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return atom(name)
    case 'integer':
      return atom('number')
    case 'object':
      return objectType(schema, place, schemaType)
    case 'array':
      return arrayType(schema, place, schemaType)
    default:
      return unknownType
  }
}

const choice = (schemas: unknown, place: Place): Type[] =>
  Array.isArray(schemas) && schemas.length > 0 ? [union(each(schemas, place))] : []

function each(schemas: unknown, place: Place): Type[] {
  const types: Type[] = []
  for (const schema of listOf(schemas)) {
    if (place.allowance.spent) return [...types, unknownType]
    types.push(schemaType(schema, place))
  }
  return types
}
