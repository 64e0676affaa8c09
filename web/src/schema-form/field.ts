import { isObject, objectAt, requiredOf, resolveSchema, type Schema } from './schema.ts'
import { type Variant, variantsOf } from './variants.ts'

export interface Property {
  readonly name: string
  readonly schema: unknown
  readonly required: boolean
}

/** How a schema is represented in a form. */
export type Field = Readonly<{ schema: Schema }> &
  (
    | { readonly kind: 'text' | 'number' | 'boolean' | 'null' | 'any' }
    | { readonly kind: 'choice'; readonly values: readonly unknown[]; readonly titles: readonly (string | undefined)[] }
    | { readonly kind: 'fixed'; readonly value: unknown }
    | { readonly kind: 'object'; readonly properties: readonly Property[]; readonly additional: unknown }
    | { readonly kind: 'list'; readonly prefixItems: readonly unknown[]; readonly items: unknown }
    | { readonly kind: 'variants'; readonly variants: readonly Variant[] }
  )

/** Max number of nested single-variant unions to unwrap. Limited because schemas can be recursive. */
const maxNesting = 8

/**
 * The field for a schema. If a value is optional, `null` is not offered in addition to other types: leaving the value
 * out means the same, and most Python servers declare every optional argument as "this or null".
 */
export function fieldOf(schemaOrRef: unknown, root: Schema, required = true, nestingLeft = maxNesting): Field {
  const schema = resolveSchema(schemaOrRef, root)
  if (nestingLeft === 0) return { kind: 'any', schema: {} }
  if ('const' in schema) return { kind: 'fixed', schema, value: schema.const }
  if (Array.isArray(schema.enum)) return choice(schema, schema.enum, enumTitles(schema), required)
  const variants = variantsOf(schema, root).filter(({ schema: { type } }) => required || type !== 'null')
  if (variants.length > 1 && variants.every(({ schema }) => 'const' in schema)) {
    const values = variants.map((variant) => variant.schema.const)
    const titles = variants.map(({ schema: { title } }) => title)
    return choice(schema, values, titles, required)
  }
  if (variants.length > 1) return { kind: 'variants', schema, variants }
  if (variants[0]) return fieldOf(withUnionTexts(variants[0].schema, schema), root, required, nestingLeft - 1)
  return fieldByType(schema)
}

/** A variant with the union's title, description and default, unless the variant has its own. */
const withUnionTexts = (variant: Schema, { title, description, default: value }: Schema): Schema => ({
  ...(title !== undefined && { title }),
  ...(description !== undefined && { description }),
  ...(value !== undefined && { default: value }),
  ...variant,
})

/** The titles of the values in `enum`, in a keyword of MCP's elicitation. */
const enumTitles = ({ enumNames }: Schema): readonly unknown[] => (Array.isArray(enumNames) ? enumNames : [])

function choice(schema: Schema, values: readonly unknown[], titles: readonly unknown[], required: boolean): Field {
  const options = values
    .map((value, index) => ({ value, title: titles[index] }))
    .filter(({ value }) => required || value !== null)
  return {
    kind: 'choice',
    schema,
    values: options.map(({ value }) => value),
    titles: options.map(({ title }) => (typeof title === 'string' ? title : undefined)),
  }
}

function fieldByType(schema: Schema): Field {
  switch (typeOf(schema)) {
    case 'string':
      return { kind: 'text', schema }
    case 'number':
    case 'integer':
      return { kind: 'number', schema }
    case 'boolean':
      return { kind: 'boolean', schema }
    case 'null':
      return { kind: 'null', schema }
    case 'object':
      return objectField(schema)
    case 'array': {
      // Before draft 2020-12, a tuple's schemas were a list in `items`.
      const prefixItems = [schema.prefixItems, schema.items].find(Array.isArray) ?? []
      return {
        kind: 'list',
        schema,
        prefixItems,
        items: Array.isArray(schema.items) ? schema.additionalItems : schema.items,
      }
    }
    default:
      return { kind: 'any', schema }
  }
}

function objectField(schema: Schema): Field {
  const required = requiredOf(schema)
  const properties = Object.entries(objectAt(schema, 'properties')).map(([name, property]) => ({
    name,
    schema: property,
    required: required.includes(name),
  }))
  const additional = schema.additionalProperties
  // Offer additional properties only if the schema mentions them: most schemas allow them only because they do not
  // forbid them.
  return {
    kind: 'object',
    schema,
    properties,
    additional: isObject(additional) || additional === true ? additional : undefined,
  }
}

/** The type of a schema, explicit or inferred from other keywords. */
export function typeOf(schema: Schema): string | undefined {
  if (typeof schema.type === 'string') return schema.type
  if ('properties' in schema || 'additionalProperties' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  if ('pattern' in schema || 'minLength' in schema || 'maxLength' in schema || 'format' in schema) return 'string'
  if ('minimum' in schema || 'maximum' in schema || 'multipleOf' in schema) return 'number'
  return undefined
}
