import { isSchemaObject, type SchemaObject, schemasIn } from '../schema.ts'

/** Whether a strict schema takes null. */
function takesNull(schema: SchemaObject): boolean {
  if (Array.isArray(schema.enum)) return schema.enum.includes(null)
  if ([schema.type].flat().includes('null')) return true
  return schemasIn(schema.anyOf).some((branch) => isSchemaObject(branch) && takesNull(branch))
}

/** The same strict schema, which takes null too. */
export function nullable(schema: SchemaObject): SchemaObject {
  if (takesNull(schema)) return schema
  const nothing = { type: 'null' }
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: [...schema.anyOf, nothing] }
  const isScalar = schema.type !== undefined && schema.properties === undefined && schema.items === undefined
  if (!isScalar) return { anyOf: [schema, nothing] }
  const types = [schema.type].flat()
  return { ...schema, type: [...types, 'null'], ...(Array.isArray(schema.enum) && { enum: [...schema.enum, null] }) }
}
