import { isSchema, isSchemaObject, type Schema, type SchemaObject, setMember } from './schema.ts'

const one = new Set([
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
])
const list = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'])
const map = new Set(['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'])

/** A copy of a schema with `change` applied to each schema right inside it; values and remarks are left alone. */
export function mapInner(schema: SchemaObject, change: (inner: Schema) => Schema): SchemaObject {
  const changed: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (one.has(keyword) && isSchema(value)) changed[keyword] = change(value)
    else if (list.has(keyword) && Array.isArray(value))
      changed[keyword] = value.map((part) => (isSchema(part) ? change(part) : part))
    else if (map.has(keyword) && isSchemaObject(value)) changed[keyword] = mapNamed(value, change)
    else setMember(changed, keyword, value)
  }
  return changed
}

function mapNamed(named: SchemaObject, change: (inner: Schema) => Schema): SchemaObject {
  const changed = {}
  for (const [name, value] of Object.entries(named)) setMember(changed, name, isSchema(value) ? change(value) : value)
  return changed
}
