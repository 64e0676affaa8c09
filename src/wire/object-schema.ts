const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a schema describes objects, in words that clients of the revisions with sessions can read. */
export function isObjectSchema(schema: unknown): boolean {
  if (!isObject(schema) || schema.type !== 'object') return false
  const { properties, required } = schema
  return (
    (properties === undefined || (isObject(properties) && Object.values(properties).every(isObject))) &&
    (required === undefined || (Array.isArray(required) && required.every((name) => typeof name === 'string')))
  )
}
