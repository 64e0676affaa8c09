import { resolve } from './references.ts'
import { isSchemaObject as isObject, type JsonSchemaObject, setMember } from './schema.ts'

const alternatives = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const']

/**
 * An object schema without alternatives at its root. The properties of all alternatives are kept, as optional ones, so
 * the result allows more; arguments are validated against the original. Returns the schema itself if it has none.
 */
export function flatRoot(schema: JsonSchemaObject): JsonSchemaObject {
  if (!alternatives.some((keyword) => keyword in schema)) return schema
  const rest = Object.entries(schema).filter(([keyword]) => !alternatives.includes(keyword))
  const found = new Map<string, Map<string, unknown>>()
  for (const { properties } of branchesOf(schema)) {
    if (!isObject(properties)) continue
    for (const [name, inner] of Object.entries(properties)) {
      const known = found.get(name) ?? new Map<string, unknown>()
      found.set(name, known.set(JSON.stringify(inner), inner))
    }
  }
  const properties: Record<string, unknown> = {}
  for (const [name, known] of found) {
    const [first, ...others] = known.values()
    setMember(properties, name, others.length === 0 ? first : { anyOf: [first, ...others] })
  }
  return { ...Object.fromEntries(rest), properties }
}

/** A schema, what it refers to, and the alternatives in all of these. References may lead back. */
function branchesOf(root: JsonSchemaObject): ReadonlySet<JsonSchemaObject> {
  const found = new Set([root])
  // This loop also visits schemas that are added to the set during the iteration.
  for (const { anyOf, oneOf, allOf, $ref } of found) {
    const target = typeof $ref === 'string' ? resolve(root, $ref, '') : undefined
    for (const one of [target, allOf, anyOf, oneOf].flat()) if (isObject(one)) found.add(one)
  }
  return found
}
