import type { SchemaObject } from './alternatives.ts'

/** The keywords that portable schemas leave out, but that tell a model which values are valid. */
const hintKeywords = [
  'format',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'contentEncoding',
  'not',
  'contains',
  'propertyNames',
  'dependentRequired',
  'default',
  'examples',
] as const

/** Formats that say no more than the type does, or that portable schemas keep. */
const plainFormats: ReadonlySet<unknown> = new Set(['date-time', 'int32', 'int64', 'float', 'double'])

const maxHintCharacters = 160

/** What the keywords that are left out say, as short texts such as `minimum: 1`. */
export function schemaHints(schema: SchemaObject): readonly string[] {
  const tuple = Array.isArray(schema.items) ? schema.items : schema.prefixItems
  const order = Array.isArray(tuple) && tuple.length > 0 ? [`in this order: ${shortJson(tuple)}`] : []
  return [...order, ...hintKeywords.flatMap((keyword) => hintOf(keyword, schema[keyword]))]
}

function hintOf(keyword: string, value: unknown): readonly string[] {
  const isPlain = value === undefined || value === null || value === false || plainFormats.has(value)
  // Generators write these bounds for every integer.
  if (isPlain || Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER) return []
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > maxHintCharacters ? [] : [`${keyword}: ${text}`]
}

export function shortJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > maxHintCharacters ? `${text.slice(0, maxHintCharacters)}…` : text
}
