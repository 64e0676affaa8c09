import { configSchema, type ServerConfig } from '../../config/schema.ts'
import type { TracedServer } from './call-spans.ts'

/** A server with this definition. */
export function serverOf(written: object, protocolVersion?: string): TracedServer {
  const { mcpServers } = configSchema.parse({ mcpServers: { one: written } })
  return { builtFrom: { config: mcpServers.one as ServerConfig }, server: { status: () => ({ protocolVersion }) } }
}
