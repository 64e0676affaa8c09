import { typeOf } from './field.ts'
import { memberOf } from './path.ts'
import { resolveSchema, type Schema } from './schema.ts'
import { variantsOf } from './variants.ts'

/** A short description of a type: `text`, `whole number`, `list of text`, `text or number`. */
export function describeType(schemaOrRef: unknown, root: Schema, depth = 0): string {
  const schema = resolveSchema(schemaOrRef, root)
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum))
    return schema.enum.length > 6 ? `one of ${schema.enum.length} values` : listValues(schema.enum)
  const variants = depth < 3 ? variantsOf(schema, root) : []
  if (variants.length > 0)
    return [...new Set(variants.map((one) => describeType(one.schema, root, depth + 1)))].join(' or ')
  const type = typeOf(schema)
  if (type === 'array' && depth < 3 && schema.items !== undefined && !Array.isArray(schema.items)) {
    return `list of ${describeType(schema.items, root, depth + 1)}`
  }
  return (type && memberOf(typeNames, type)) ?? 'anything'
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
  array: 'list',
  null: 'null',
}

const listValues = (values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join(' | ')

/** The constraints in a schema as text: `1–64 characters`, `0 or more`, `email`. */
export function describeConstraints(schemaOrRef: unknown, root: Schema): readonly string[] {
  const schema = resolveSchema(schemaOrRef, root)
  const ifSet = (key: string, describe: (value: string) => string): string[] => {
    const value = schema[key]
    return typeof value === 'number' || typeof value === 'string' ? [describe(String(value))] : []
  }
  return [
    ...ifSet('format', (format) => format),
    ...describeRange(schema.minimum, schema.maximum, ''),
    ...ifSet('exclusiveMinimum', (least) => `more than ${least}`),
    ...ifSet('exclusiveMaximum', (most) => `less than ${most}`),
    ...ifSet('multipleOf', (step) => `a multiple of ${step}`),
    ...describeRange(schema.minLength, schema.maxLength, ' characters'),
    ...describeRange(schema.minItems, schema.maxItems, ' items'),
    ...(schema.uniqueItems === true ? ['no duplicates'] : []),
    ...ifSet('pattern', (pattern) => `matches ${pattern}`),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ]
}

function describeRange(min: unknown, max: unknown, unit: string): string[] {
  const from = typeof min === 'number'
  const to = typeof max === 'number'
  if (from && to) return [min === max ? `${min}${unit}` : `${min}–${max}${unit}`]
  if (from) return [`${min} or more${unit}`]
  return to ? [`at most ${max}${unit}`] : []
}
