import { isObject, mergeSchemas, objectAt, requiredOf, resolveSchema, type Schema } from './schema.ts'

export interface Variant {
  readonly label: string
  readonly schema: Schema
}

/** The variants in `oneOf`, `anyOf` or a list of types. Empty if there are none. */
export function variantsOf(schema: Schema, root: Schema): readonly Variant[] {
  const { oneOf, anyOf, ...common } = schema
  const parts = [oneOf, anyOf].find((list): list is unknown[] => Array.isArray(list) && list.length > 0)
  if (parts) {
    const schemas = parts
      .map((part) => resolveSchema(part, root))
      .map((part) => ({ part, merged: withUnionKeywords(common, part) }))
    return schemas.map(({ part, merged }, index) => ({
      label: labelOf(part, root) ?? `option ${index + 1}`,
      schema: merged,
    }))
  }
  if (!Array.isArray(schema.type)) return []
  const types = schema.type.filter((type) => typeof type === 'string')
  return types.map((type) => ({ label: type, schema: { ...schema, type } }))
}

/** Merges a variant with the union's keywords, except for those that describe the union itself. */
function withUnionKeywords(common: Schema, part: Schema): Schema {
  const { title: _, description: __, default: ___, $schema: ____, $defs: _____, ...rules } = common
  return mergeSchemas(rules, part)
}

/** A variant's label: its title, discriminator, required properties or type. */
function labelOf(part: Schema, root: Schema): string | undefined {
  if (typeof part.title === 'string') return part.title
  if ('const' in part) return JSON.stringify(part.const)
  for (const [name, property] of Object.entries(objectAt(part, 'properties'))) {
    const { const: word } = resolveSchema(property, root)
    if (typeof word === 'string') return `${name}: ${word}`
  }
  const required = requiredOf(part)
  if (required.length > 0) return `with ${required.join(', ')}`
  if (part.type === 'array') {
    const { type } = isObject(part.items) ? resolveSchema(part.items, root) : {}
    return typeof type === 'string' ? `list of ${type}s` : 'list'
  }
  return typeof part.type === 'string' ? part.type : undefined
}
