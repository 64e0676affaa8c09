import { resolve } from '../references.ts'
import {
  isOfType,
  isSchemaObject,
  type JsonSchemaObject,
  namedSchemas,
  namedTypes,
  schemasIn,
  setMember,
} from '../schema.ts'

/** Removes the nulls that only the strict schema allows. `added` maps object schemas to the members with such nulls. */
export function restorer(root: JsonSchemaObject, added: WeakMap<object, ReadonlySet<string>>) {
  const target = (schema: JsonSchemaObject): JsonSchemaObject =>
    typeof schema.$ref === 'string' ? (resolve(root, schema.$ref, '') as JsonSchemaObject) : schema

  /** Whether a value matches a branch in its types, listed values and member names. Branches differ only in these. */
  const fits = (schemaOrReference: JsonSchemaObject, value: unknown): boolean => {
    const schema = target(schemaOrReference)
    if (Array.isArray(schema.anyOf))
      return schemasIn(schema.anyOf).some((branch) => isSchemaObject(branch) && fits(branch, value))
    if (Array.isArray(schema.enum)) return schema.enum.some((one) => JSON.stringify(one) === JSON.stringify(value))
    const types = namedTypes(schema)
    if (types && !isOfType(value, types)) return false
    if (Array.isArray(value))
      return !isSchemaObject(schema.items) || value.every((item) => fits(schema.items as JsonSchemaObject, item))
    if (!isSchemaObject(value)) return true
    const members = new Map(namedSchemas(schema.properties))
    const entries = Object.entries(value)
    const fitsMember = ([name, inner]: readonly [string, unknown]) => {
      const member = members.get(name)
      return isSchemaObject(member) && fits(member, inner)
    }
    return entries.length === members.size && entries.every(fitsMember)
  }

  /** The branch that matches the value; otherwise the only branch with the value's type, if there is exactly one. */
  const branchOf = (branches: readonly JsonSchemaObject[], value: unknown): JsonSchemaObject | undefined => {
    const fitting = branches.find((branch) => fits(branch, value))
    if (fitting) return fitting
    const [only, ...others] = branches.filter((branch) => isOfType(value, namedTypes(target(branch)) ?? []))
    return others.length === 0 ? only : undefined
  }

  const restore = (schemaOrReference: JsonSchemaObject, value: unknown): unknown => {
    const schema = target(schemaOrReference)
    if (Array.isArray(schema.anyOf)) {
      const branch = branchOf(schemasIn(schema.anyOf).filter(isSchemaObject), value)
      return branch ? restore(branch, value) : value
    }
    if (Array.isArray(value))
      return isSchemaObject(schema.items) ? value.map((item) => restore(schema.items as JsonSchemaObject, item)) : value
    if (!isSchemaObject(value) || !isSchemaObject(schema.properties)) return value
    const members = new Map(namedSchemas(schema.properties))
    const restored = {}
    for (const [name, inner] of Object.entries(value)) {
      if (inner === null && added.get(schema)?.has(name)) continue
      const member = members.get(name)
      setMember(restored, name, isSchemaObject(member) ? restore(member, inner) : inner)
    }
    return restored
  }

  return (value: unknown): unknown => restore(root, value)
}
