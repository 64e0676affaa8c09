import * as z from 'zod'
import { serverAliases, serverExtras, transportAliases } from './import/aliases.ts'
import { configSchema } from './schema.ts'

interface JsonSchema {
  readonly properties: Record<string, JsonSchema>
  readonly additionalProperties: JsonSchema
  enum?: string[]
  [keyword: string]: unknown
}

export function editorSchema(): object {
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
