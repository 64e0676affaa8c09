import type { ZodType } from 'zod'

/** The parts of a schema's definition that matter here; which of them there are depends on its type. */
interface Definition {
  readonly type: string
  readonly innerType?: ZodType
  readonly in?: ZodType
  readonly defaultValue?: unknown
  readonly shape?: Readonly<Record<string, ZodType>>
  readonly valueType?: ZodType
  readonly element?: ZodType
  readonly options?: readonly ZodType[]
  readonly discriminator?: string
  readonly entries?: Readonly<Record<string, string>>
  readonly values?: readonly unknown[]
  /** What a wrong value is told: the same words say here what is right. */
  readonly error?: (issue: object) => string
}

/** A schema without what is wrapped around it, and what the wrappers say. */
export interface Unwrapped {
  readonly definition: Definition
  /** As it would be written; undefined where there is none. */
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

/** The values that can be told one by one, also those of a list's items; none where there are too many. */
export function valuesOf(schema: ZodType): readonly string[] {
  const { entries, values, element } = unwrap(schema).definition
  if (element) return valuesOf(element)
  return (entries ? Object.values(entries) : (values ?? [])).map(String)
}

/** What may be written there. */
export function typeInWords(schema: ZodType): string {
  const { type, shape, element, valueType, discriminator, error } = unwrap(schema).definition
  if (shape) return 'a section'
  if (element) return `list: ${typeInWords(element)}`
  if (valueType) return `by name: ${typeInWords(valueType)}`
  const values = valuesOf(schema)
  if (values.length > 0) return values.map((value) => `\`${value}\``).join(', ')
  if (discriminator) return 'see below'
  return type === 'unknown' ? 'anything' : short(error?.({}) ?? 'some text')
}

/** Durations and sizes are explained once, at the top of the page. */
const short = (expected: string): string => expected.replace(/^(a duration|a size) such as .*/, '$1')
