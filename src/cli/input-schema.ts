import { requiredNames } from '../core/schema-keywords.ts'
import { isRecord as isSchema } from '../lib/is-record.ts'

export type InputSchema = Readonly<Record<string, unknown>>

/** Maximum depth to which references are followed, because a schema may refer to itself. */
const maxDepth = 8

function follow(root: InputSchema, schema: unknown, depth: number): readonly InputSchema[] {
  if (!isSchema(schema) || depth > maxDepth) return []
  const reference = schema.$ref
  const target =
    typeof reference === 'string' && reference.startsWith('#/')
      ? reference
          .slice(2)
          .split('/')
          .reduce<unknown>((at, step) => (isSchema(at) && Object.hasOwn(at, step) ? at[step] : undefined), root)
      : undefined
  const choices = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray).flat()
  return [schema, ...[target, ...choices].flatMap((part) => follow(root, part, depth + 1))]
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const typesOf = (schemas: readonly InputSchema[]): ReadonlySet<string> =>
  new Set(
    schemas.flatMap(({ type, enum: options, const: only }) => {
      if (typeof type === 'string') return [type]
      if (Array.isArray(type)) return type.map(String)
      return [...(Array.isArray(options) ? options : []), ...(only === undefined ? [] : [only])].map(typeOf)
    }),
  )

/** The JSON types that an argument and its elements may have; empty if the schema does not say. */
export function acceptedBy(
  root: InputSchema | undefined,
  key: string,
): { types: ReadonlySet<string>; items: ReadonlySet<string> } {
  if (root === undefined) return { types: new Set(), items: new Set() }
  const property = follow(root, root, 0).flatMap(({ properties }) =>
    isSchema(properties) && Object.hasOwn(properties, key) ? follow(root, properties[key], 0) : [],
  )
  return { types: typesOf(property), items: typesOf(property.flatMap(({ items }) => follow(root, items, 0))) }
}

/** A tool's arguments, for display. */
export function properties(root: InputSchema | undefined) {
  if (root === undefined || !isSchema(root.properties)) return []
  const required = requiredNames(root)
  return Object.entries(root.properties).map(([name, property]) => {
    const { types, items } = acceptedBy(root, name)
    const options = isSchema(property) && Array.isArray(property.enum) ? property.enum.map(String) : undefined
    const description = isSchema(property) && typeof property.description === 'string' ? property.description : ''
    const type = [...types].map((type) => (type === 'array' && items.size > 0 ? `${[...items].join('|')}[]` : type))
    return { name, type: (options ?? type).join('|'), required: required.includes(name), description }
  })
}
