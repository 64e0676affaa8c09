import { resolveReference } from '../json/json-pointer.ts'
import { ExactNumber } from '../json/parse-json.ts'
import { isRecord } from '../lib/is-record.ts'

export type Fields = Readonly<Record<string, unknown>>
type Shape = (value: unknown) => boolean

const isStringShape: Shape = (value) => typeof value === 'string'
const isFlagShape: Shape = (value) => typeof value === 'boolean'
const number: Shape = (value) => (typeof value === 'number' && Number.isFinite(value)) || value instanceof ExactNumber
const isCountShape: Shape = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const areNames: Shape = (value) => Array.isArray(value) && value.every(isStringShape)
const namesByName: Shape = (value) => isRecord(value) && Object.values(value).every(areNames)

/** Keywords that constrain a value (titles and defaults do not), each with a check that it is used correctly. */
export const assertions: Readonly<Record<string, Shape | undefined>> = {
  type: (value) => isStringShape(value) || areNames(value),
  enum: Array.isArray,
  const: () => true,
  multipleOf: (value) => number(value) && Number(value instanceof ExactNumber ? value.source : value) > 0,
  ...forKeywords(isFlagShape, 'nullable uniqueItems'),
  ...forKeywords(number, 'maximum exclusiveMaximum minimum exclusiveMinimum'),
  ...forKeywords(
    isCountShape,
    'maxLength minLength maxItems minItems maxContains minContains maxProperties minProperties',
  ),
  ...forKeywords(isStringShape, 'pattern format $ref $dynamicRef $anchor $dynamicAnchor'),
  required: areNames,
  dependentRequired: namesByName,
}

/** Keywords that hold subschemas, and how: one schema, a list, or a map by name. */
export const applicators: Readonly<Record<string, 'one' | 'list' | 'map' | undefined>> = {
  ...forKeywords('one', 'additionalItems additionalProperties contains else if items not propertyNames then'),
  ...forKeywords('one', 'unevaluatedItems unevaluatedProperties'),
  ...forKeywords('list', 'allOf anyOf oneOf prefixItems'),
  ...forKeywords('map', '$defs definitions dependencies dependentSchemas patternProperties properties'),
}

/** Whether `items` is a list of schemas, which drafts before the latest allowed. */
export const isListOfItems = (keyword: string, value: unknown): value is readonly unknown[] =>
  keyword === 'items' && Array.isArray(value)

/** Whether `dependencies` lists required properties, which drafts before the latest allowed. */
export const isListOfNames = (keyword: string, value: unknown) => keyword === 'dependencies' && areNames(value)

/**
 * The properties that a caller must send. One that has a `default` may be omitted, because the server inserts it: some
 * libraries list such properties in `required` because the server always sees them (zod's output schemas).
 */
export function requiredNames({ required, properties }: Fields): readonly unknown[] {
  if (!Array.isArray(required) || !isRecord(properties)) return Array.isArray(required) ? required : []
  return required.filter((name) => {
    const schema = Object.hasOwn(properties, name as string) ? properties[name as string] : undefined
    return !(isRecord(schema) && schema.default !== undefined)
  })
}

/** Replaces the flags of draft 4, `{minimum: 0, exclusiveMinimum: true}`, with the bounds of later drafts. */
export function withNumericBounds(schema: Fields): Fields {
  if (typeof schema.exclusiveMinimum !== 'boolean' && typeof schema.exclusiveMaximum !== 'boolean') return schema
  const copy: Record<string, unknown> = { ...schema }
  for (const [flag, bound] of [['exclusiveMinimum', 'minimum'] as const, ['exclusiveMaximum', 'maximum'] as const]) {
    if (typeof copy[flag] !== 'boolean') continue
    const isExclusive = copy[flag] && copy[bound] !== undefined
    if (isExclusive) copy[flag] = copy[bound]
    delete copy[isExclusive ? bound : flag]
  }
  return copy
}

function forKeywords<T>(value: T, keywords: string): Record<string, T> {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, value]))
}

/** Whether one of the schemas declares a member. Also looks in schemas that they refer to or combine. */
export function declares(schemas: readonly unknown[], name: string, root: unknown): boolean {
  return composedSchemas(schemas, root).some(
    ({ properties }) => isRecord(properties) && Object.hasOwn(properties, name),
  )
}

/** The schemas of a member; if no member is given, the schemas of the items. */
export function schemasAt(schemas: readonly unknown[], member: string | undefined, root: unknown): readonly unknown[] {
  return composedSchemas(schemas, root).map(({ items, properties }) => {
    if (member === undefined) return items
    return isRecord(properties) && Object.hasOwn(properties, member) ? properties[member] : undefined
  })
}

/** These schemas and all schemas that they refer to or combine, each once, because servers' schemas may be circular. */
export function composedSchemas(schemas: readonly unknown[], root: unknown): readonly Fields[] {
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
