import { isRecord } from '../../lib/is-record.ts'
import { memoizeByContent } from './conversion.ts'
import { resolve } from './references.ts'
import { type AnySchema, forKeywords, isSchema, type JsonSchemaObject, mapSubschemas } from './schema.ts'

const knownTypes = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])

const isTextKeyword = (value: unknown): boolean => typeof value === 'string'
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value)
const isCountKeyword = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0
const isNonEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length > 0
const isSchemaList = (value: unknown): boolean => isNonEmptyList(value) && (value as unknown[]).every(isSchema)
const isSchemaMap = (value: unknown): boolean => isRecord(value) && Object.values(value).every(isSchema)
const isTypeKeyword = (value: unknown): boolean =>
  isNonEmptyList(value)
    ? (value as unknown[]).every((one) => knownTypes.has(one as string))
    : knownTypes.has(value as string)

/** For each keyword, a function that checks whether its value is meaningful. */
const meaningful: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: isTypeKeyword,
  ...forKeywords(isSchemaMap, 'properties', 'patternProperties', '$defs', 'definitions'),
  required: (value) => Array.isArray(value) && value.every(isTextKeyword),
  enum: isNonEmptyList,
  ...forKeywords(isSchemaList, 'anyOf', 'oneOf', 'allOf', 'prefixItems'),
  items: (value) => isSchema(value) || isSchemaList(value),
  ...forKeywords(isSchema, 'additionalProperties', 'not'),
  pattern: isValidPattern,
  ...forKeywords(isNumber, 'minimum', 'maximum'),
  ...forKeywords(isCountKeyword, 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'),
  ...forKeywords(isTextKeyword, 'description', 'title'),
}

function isValidPattern(value: unknown): boolean {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') !== undefined
  } catch {
    return false
  }
}

const maxSanitizedDepth = 64

/**
 * Removes meaningless keywords from a tool's input schema, because model servers refuse the whole request for one bad
 * schema. The tool's server still validates against the original. Returns `undefined` if the schema does not allow an
 * object, which means that the tool cannot be offered.
 */
export const sanitizeSchema = memoizeByContent((schema: JsonSchemaObject): JsonSchemaObject | undefined => {
  // Omit `$schema`: models do not need it, and some servers refuse it.
  const { type = 'object', $schema: _draft, ...rest } = schema
  if (type !== 'object' && !(Array.isArray(type) && type.includes('object'))) return undefined
  return { type: 'object', properties: {}, ...mend({ ...rest, type: 'object' }, schema, 0) }
})

function mend(schema: JsonSchemaObject, root: JsonSchemaObject, depth: number): JsonSchemaObject {
  if (depth > maxSanitizedDepth) return {}
  const kept = Object.entries(schema).filter(([keyword, value]) => {
    if (keyword === '$ref') return leadsSomewhere(root, value)
    return Object.hasOwn(meaningful, keyword) ? meaningful[keyword]?.(value) : true
  })
  return mapSubschemas(Object.fromEntries(kept), (inner: AnySchema) =>
    typeof inner === 'boolean' ? inner : mend(inner, root, depth + 1),
  )
}

function leadsSomewhere(root: JsonSchemaObject, reference: unknown): boolean {
  try {
    return typeof reference === 'string' && isSchema(resolve(root, reference, '#'))
  } catch {
    return false
  }
}

const alternativeKeywords = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const']

/**
 * An object schema without alternatives at its root. The properties of all alternatives are kept, as optional ones, so
 * the result allows more; arguments are validated against the original. Returns the schema itself if it has none.
 */
export function flatRoot(schema: JsonSchemaObject): JsonSchemaObject {
  if (!alternativeKeywords.some((keyword) => keyword in schema)) return schema
  const rest = Object.entries(schema).filter(([keyword]) => !alternativeKeywords.includes(keyword))
  const found = new Map<string, Map<string, unknown>>()
  for (const { properties } of branchesOf(schema)) {
    if (!isRecord(properties)) continue
    for (const [name, inner] of Object.entries(properties)) {
      const known = found.get(name) ?? new Map<string, unknown>()
      found.set(name, known.set(JSON.stringify(inner), inner))
    }
  }
  const properties = [...found].map(([name, known]) => {
    const [first, ...others] = known.values()
    return [name, others.length === 0 ? first : { anyOf: [first, ...others] }]
  })
  return { ...Object.fromEntries(rest), properties: Object.fromEntries(properties) }
}

/** A schema, what it refers to, and the alternatives in all of these. References may lead back. */
function branchesOf(root: JsonSchemaObject): ReadonlySet<JsonSchemaObject> {
  const found = new Set([root])
  // This loop also visits schemas that are added to the set during the iteration.
  for (const { anyOf, oneOf, allOf, $ref } of found) {
    const target = typeof $ref === 'string' ? resolve(root, $ref, '') : undefined
    for (const one of [target, allOf, anyOf, oneOf].flat()) if (isRecord(one)) found.add(one)
  }
  return found
}
