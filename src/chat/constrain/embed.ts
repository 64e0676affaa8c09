import { mapInner } from './applicators.ts'
import { isSchemaObject, type Schema, type SchemaObject } from './schema.ts'

/** A schema that has become part of another, and the definitions that it brings along. */
export interface Embedded {
  readonly schema: SchemaObject
  readonly definitions: readonly (readonly [string, Schema])[]
}

/**
 * Makes a schema fit to stand inside another one: what it defines goes to the root under names of its own, and its
 * references lead to where things then are. Its ids stay behind, as they would change what references mean.
 */
export function embed(schema: SchemaObject, place: { readonly at: string; readonly key: string }): Embedded {
  const rename = (name: string): string => `${place.key}_${name}`
  const moved = (reference: string): string => {
    if (reference === '#') return place.at
    const definition = /^#\/(?:\$defs|definitions)\/([^/]+)(.*)$/s.exec(reference)
    if (definition) return `#/$defs/${rename(definition[1] as string)}${definition[2]}`
    return reference.startsWith('#/') ? place.at + reference.slice(1) : reference
  }
  const change = (inner: Schema): Schema => {
    if (typeof inner === 'boolean') return inner
    const { $id: _id, id: _oldId, $schema: _dialect, ...rest } = mapInner(inner, change)
    return typeof rest.$ref === 'string' ? { ...rest, $ref: moved(rest.$ref) } : rest
  }
  const { $defs, definitions, ...own } = change(schema) as SchemaObject
  const brought = [definitions, $defs].filter(isSchemaObject).flatMap((all) => Object.entries(all))
  return { schema: own, definitions: brought.map(([name, inner]) => [rename(name), inner as Schema]) }
}
