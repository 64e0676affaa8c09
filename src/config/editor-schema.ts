import * as z from 'zod'
import { asRecord, isRecord } from '../lib/is-record.ts'
import { serverAliases, serverExtras, transportAliases } from './import/aliases.ts'
import { configSchema } from './schema.ts'

interface JsonSchema {
  readonly properties: Record<string, JsonSchema>
  readonly additionalProperties: JsonSchema
  enum?: string[]
  [keyword: string]: unknown
}

/** The schema of a file. A section or list without a value is accepted, because it counts as absent. */
export const editorSchema = (): object => optionalValues(settingsSchema()) as object

function optionalValues(schema: unknown, key = '', parent = ''): unknown {
  if (Array.isArray(schema)) return schema.map((one) => optionalValues(one))
  if (!isRecord(schema)) return schema
  const made = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, optionalValues(part, name, key)]))
  const { type, oneOf } = made
  if (parent !== 'properties' && key !== 'additionalProperties') return made
  if (type === 'object' || type === 'array') return { ...made, type: [type, 'null'] }
  return Array.isArray(oneOf) ? { ...made, oneOf: [...oneOf, { type: 'null' }] } : made
}

function settingsSchema(): object {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    // Omit the internal keyword `secret`, which editors may reject.
    override: ({ jsonSchema }) => void delete jsonSchema.secret,
  }) as unknown as JsonSchema
  const server = schema.properties.mcpServers?.additionalProperties.properties ?? {}
  server.transport?.enum?.push(...Object.keys(transportAliases))
  for (const [key, description] of Object.entries(serverExtras)) {
    server[key] = { type: 'string', description } as unknown as JsonSchema
  }
  for (const [alias, description] of Object.entries(serverAliases)) {
    server[alias] = { description, deprecated: true } as unknown as JsonSchema
  }
  return {
    $schema: schema.$schema,
    title: 'Toolway configuration',
    description: 'A file that toolway serve --config reads. Everything is optional.',
    ...schema,
  }
}

/** The schemas of the sections, for forms. */
export const formSchema = (): Record<string, Record<string, unknown>> =>
  (simplified(settingsSchema()) as { properties: Record<string, Record<string, unknown>> }).properties

/** The settings of a server that most servers need, in the order of a form. */
const commonSettings = [
  ...['command', 'args', 'env', 'url', 'headers', 'description'],
  ...['timeout', 'tools', 'approve', 'approvers', 'capture'],
]

/** The schema of a server for a form: common settings first, which `common` names, and aliases last, as deprecated. */
export function serverFormSchema(): { schema: Record<string, unknown>; common: string[] } {
  const { additionalProperties } = formSchema().mcpServers ?? {}
  const { properties, ...schema } = asRecord(additionalProperties)
  const all = Object.entries(asRecord(properties))
  const rank = ([name]: (typeof all)[number]) => {
    const index = commonSettings.indexOf(name)
    return index < 0 ? commonSettings.length : index
  }
  return {
    schema: { ...schema, properties: Object.fromEntries(all.toSorted((a, b) => rank(a) - rank(b))) },
    common: commonSettings,
  }
}

/** A schema without the alternative that a value may be a reference such as ${VARIABLE}, which YAML is better for. */
function simplified(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(simplified)
  if (!isRecord(schema)) return schema
  const { anyOf, ...rest } = schema
  const [first, second, ...more] = Array.isArray(anyOf) ? anyOf : []
  if (first && second && more.length === 0 && [first, second].some(isReference)) {
    // For a duration, which is text or 0, the first one is the text, which covers both.
    return { ...rest, ...(simplified(first) as object) }
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, simplified(value)]))
}

const isReference = (schema: unknown): boolean => {
  const { type, pattern } = asRecord(schema)
  return type === 'string' && typeof pattern === 'string' && pattern.includes('\\$\\{')
}
