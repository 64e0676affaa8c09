import { isSchemaObject as isObject, type JsonSchemaObject, setMember } from './schema.ts'

const alternatives = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const'] as const

/**
 * An object schema without alternatives at its root. The properties of all alternatives are kept, as optional ones, so
 * the result allows more; arguments are validated against the original. Returns the schema itself if it has none.
 */
export function flatRoot(schema: JsonSchemaObject): JsonSchemaObject {
  if (!alternatives.some((keyword) => keyword in schema)) return schema
  const {
    anyOf,
    oneOf,
    allOf,
    not: _not,
    if: _if,
    then: _then,
    else: _else,
    enum: _enum,
    const: _const,
    ...rest
  } = schema
  const properties: Record<string, unknown> = {}
  const branches = [rest, ...[allOf, anyOf, oneOf].flatMap((all) => (Array.isArray(all) ? all : []))]
  for (const branch of branches) {
    if (!isObject(branch) || !isObject(branch.properties)) continue
    for (const [name, inner] of Object.entries(branch.properties)) {
      const earlier = Object.hasOwn(properties, name) ? properties[name] : undefined
      setMember(properties, name, earlier === undefined ? inner : either(earlier, inner))
    }
  }
  return { ...rest, properties }
}

/** A schema for values that match one of two schemas. */
function either(one: unknown, other: unknown): unknown {
  const all = isObject(one) && Array.isArray(one.anyOf) && Object.keys(one).length === 1 ? one.anyOf : [one]
  const isKnown = all.some((known) => JSON.stringify(known) === JSON.stringify(other))
  return isKnown ? one : { anyOf: [...all, other] }
}
