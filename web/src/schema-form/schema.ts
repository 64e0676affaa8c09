/** A JSON Schema from a server, not validated. */
export type Schema = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Max number of references to follow. Limited because references can be circular. */
const maxReferences = 32

/** Resolves a schema's reference within the root document, and merges `allOf`. */
export function resolveSchema(schema: unknown, root: Schema, referencesLeft = maxReferences): Schema {
  if (!isObject(schema) || referencesLeft === 0) return schema === false ? { not: {} } : {}
  if (typeof schema.$ref === 'string') {
    const { $ref, ...siblings } = schema
    return mergeSchemas(
      resolveSchema(resolvePointer($ref as string, root), root, referencesLeft - 1),
      resolveSchema(siblings, root, referencesLeft - 1),
    )
  }
  if (!Array.isArray(schema.allOf)) return schema
  const { allOf, ...own } = schema
  return (allOf as unknown[]).map((part) => resolveSchema(part, root, referencesLeft - 1)).reduce(mergeSchemas, own)
}

/** Merges two schemas: combines their properties and required names. For all other keywords, the second schema wins. */
export function mergeSchemas(first: Schema, second: Schema): Schema {
  const both = { ...first, ...second }
  const properties = { ...objectAt(first, 'properties'), ...objectAt(second, 'properties') }
  const required = [...new Set([...requiredOf(first), ...requiredOf(second)])]
  return {
    ...both,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  }
}

export const objectAt = (schema: Schema, key: string): Schema => {
  const value = schema[key]
  return isObject(value) ? value : {}
}

export const requiredOf = (schema: Schema): readonly string[] =>
  Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : []

/** Resolves references such as `#` and `#/$defs/a`. An external reference becomes a schema that accepts everything. */
function resolvePointer(reference: string, root: Schema): unknown {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return {}
  let target: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = unescapePointer(part)
    target =
      typeof target === 'object' && target !== null && Object.hasOwn(target, key) ? (target as Schema)[key] : undefined
  }
  return target
}

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part
  }
}
