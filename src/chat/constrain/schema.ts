/** A JSON Schema that says something. */
export type SchemaObject = Readonly<Record<string, unknown>>

/** A JSON Schema: `true` allows everything, `false` nothing. */
export type Schema = SchemaObject | boolean

export const isSchemaObject = (value: unknown): value is SchemaObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isSchemaObject(value)

/** A list of schemas, such as `anyOf` holds; empty where it holds something else. */
export const schemasIn = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : [])

/** Schemas by name, such as `properties` holds. */
export const namedSchemas = (value: unknown): readonly (readonly [string, Schema])[] =>
  isSchemaObject(value) ? Object.entries(value).filter((entry): entry is [string, Schema] => isSchema(entry[1])) : []

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

export const numberIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

/** Sets a member also where its name is `__proto__`, which assignment would take for something else. */
export function setMember(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })
}
