import type { ZodType } from 'zod'

/** The used parts of a schema definition; which ones exist depends on its type. */
interface Definition {
  readonly type: string
  readonly innerType?: ZodType
  readonly in?: ZodType
  readonly defaultValue?: unknown
  readonly shape?: Readonly<Record<string, ZodType>>
  readonly valueType?: ZodType
  /** The schema of other members than those in the shape. */
  readonly catchall?: ZodType
  readonly element?: ZodType
  readonly options?: readonly ZodType[]
  readonly discriminator?: string
  readonly entries?: Readonly<Record<string, string>>
  readonly values?: readonly unknown[]
  /** The message for a wrong value, which also describes the type. */
  readonly error?: (issue: object) => string
}

/** A schema without its wrappers, and what they declare. */
export interface Unwrapped {
  readonly definition: Definition
  /** The default as written, if any. */
  readonly initial?: unknown
  readonly required: boolean
  readonly description: string
}

export function unwrap(schema: ZodType): Unwrapped {
  const definition = schema._zod.def as unknown as Definition
  const inner = definition.innerType ?? definition.in
  if (!inner) return { definition, required: true, description: schema.description ?? '' }
  const found = unwrap(inner)
  const description = schema.description ?? found.description
  if (definition.type === 'optional') return { ...found, description, required: false }
  if ('defaultValue' in definition) return { ...found, description, required: false, initial: definition.defaultValue }
  return { ...found, description }
}

/** The allowed values of an enum, or of a list's items; empty for other types. */
export function valuesOf(schema: ZodType): readonly string[] {
  const { entries, values, element } = unwrap(schema).definition
  if (element) return valuesOf(element)
  return (entries ? Object.values(entries) : (values ?? [])).map(String)
}

/** The type in words. */
export function typeInWords(schema: ZodType): string {
  const { type, shape, element, valueType, discriminator, error } = unwrap(schema).definition
  if (shape) return 'section'
  if (element) return `list of: ${typeInWords(element)}`
  if (valueType) return `map from name to: ${typeInWords(valueType)}`
  const values = valuesOf(schema)
  if (values.length > 0) return values.map((value) => `\`${value}\``).join(', ')
  if (discriminator) return 'see below'
  return type === 'unknown' ? 'anything' : short(error?.({}) ?? 'text')
}

/** Durations and sizes are explained once, at the top of the page. */
const short = (expected: string): string => expected.replace(/^(a duration|a size) such as .*/, '$1')
