import { resolveReference } from '../json/json-pointer.ts'
import { isRecord } from '../lib/is-record.ts'

/** Whether one of the schemas declares a member. Also looks in schemas that they refer to or combine. */
export function declares(schemas: readonly unknown[], name: string, root: unknown): boolean {
  return composed(schemas, root).some(({ properties }) => isRecord(properties) && Object.hasOwn(properties, name))
}

/** The schemas of a member; if no member is given, the schemas of the items. */
export function schemasAt(schemas: readonly unknown[], member: string | undefined, root: unknown): readonly unknown[] {
  return composed(schemas, root).map(({ items, properties }) => {
    if (member === undefined) return items
    return isRecord(properties) && Object.hasOwn(properties, member) ? properties[member] : undefined
  })
}

type Fields = Readonly<Record<string, unknown>>

/** These schemas and all schemas that they refer to or combine, each once, because servers' schemas may be circular. */
export function composed(schemas: readonly unknown[], root: unknown): readonly Fields[] {
  const found = new Set<Fields>()
  const open = [...schemas]
  while (open.length > 0) {
    const schema = open.pop()
    if (!isRecord(schema) || found.has(schema)) continue
    found.add(schema)
    for (const list of [schema.allOf, schema.anyOf, schema.oneOf]) if (Array.isArray(list)) open.push(...list)
    open.push(schema.then, schema.else, isRecord(schema.$ref) ? schema.$ref : resolveReference(root, schema.$ref))
  }
  return [...found]
}
