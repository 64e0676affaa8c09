import { configSchema, type ServerConfig } from '../../config/schema.ts'
import type { TracedServer } from './call-spans.ts'

/** A server as a world knows it, by what somebody has written of it. */
export function serverOf(written: object, protocolVersion?: string): TracedServer {
  const { mcpServers } = configSchema.parse({ mcpServers: { one: written } })
  return { builtFrom: { config: mcpServers.one as ServerConfig }, server: { status: () => ({ protocolVersion }) } }
}
