/** A JSON Schema as servers write it: anything may be anywhere in it. */
export type Schema = Readonly<Record<string, unknown>>

export const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
