import type { SchemaObject } from '../schema.ts'

/** Keywords that are kept as they are, by the type that they speak of. */
const kept: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['minItems', 'maxItems'],
}

/** Demands that cannot be made in a strict schema. They are told to the model in words instead. */
const movable = new Set([
  'minLength',
  'maxLength',
  'uniqueItems',
  'contains',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'pattern',
  'format',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
])

const formats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

export interface Sorted {
  readonly kept: SchemaObject
  readonly moved: SchemaObject
}

/** Which of a schema's demands stay, for these types, and which have to be put into words. */
export function sortKeywords(schema: SchemaObject, types: readonly string[]): Sorted {
  const sorted: { kept: Record<string, unknown>; moved: Record<string, unknown> } = { kept: {}, moved: {} }
  const stays = new Set(types.flatMap((type) => kept[type] ?? []))
  for (const [keyword, value] of Object.entries(schema)) {
    // Flags of an older draft, and formats that the server would not know.
    const fits = typeof value !== 'boolean' && (keyword !== 'format' || formats.has(value as string))
    if (stays.has(keyword) && fits) sorted.kept[keyword] = value
    else if (movable.has(keyword)) sorted.moved[keyword] = value
  }
  return sorted
}

/** The description, with what had to be moved out of the schema. */
export function described({ description }: SchemaObject, moved: SchemaObject): { description?: string } {
  const words = typeof description === 'string' ? description : ''
  if (Object.keys(moved).length === 0) return words === '' ? {} : { description: words }
  const demands = JSON.stringify(moved)
  return { description: [words, `It must also meet ${demands}.`].filter((part) => part !== '').join(' ') }
}
