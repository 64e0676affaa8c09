import { fieldOf } from './field.ts'
import { resolveSchema, type Schema } from './schema.ts'

/**
 * Max depth of initial values. A schema can require itself recursively, so without a limit the value would be infinite.
 */
const maxDepth = 12

/** A form's initial value, with defaults and required values only. Undefined means that the value is omitted. */
export function initialValue(schemaOrRef: unknown, root: Schema, required = true, depth = 0): unknown {
  const schema = resolveSchema(schemaOrRef, root)
  if (schema.default !== undefined && (required || schema.default !== null)) return schema.default
  const field = fieldOf(schema, root, required)
  if (!required || depth >= maxDepth) return undefined
  switch (field.kind) {
    case 'fixed':
      return field.value
    case 'boolean':
      return false
    case 'null':
      return null
    case 'choice':
      return field.values.length === 1 ? field.values[0] : undefined
    case 'object': {
      const members = field.properties.map(
        (property) => [property.name, initialValue(property.schema, root, property.required, depth + 1)] as const,
      )
      return Object.fromEntries(members.filter(([, value]) => value !== undefined))
    }
    case 'list': {
      const least = typeof schema.minItems === 'number' ? Math.min(schema.minItems, 20) : 0
      const length = Math.max(least, field.prefixItems.length)
      return Array.from({ length }, (_, index) => {
        return initialValue(field.prefixItems[index] ?? field.items ?? {}, root, true, depth + 1) ?? null
      })
    }
    case 'variants':
      return initialValue(field.variants[0]?.schema, root, true, depth + 1)
    default:
      return undefined
  }
}
