import type { ServerConfig } from '../../config/schema.ts'
import type { SourceStatus } from '../../core/source-status.ts'
import { text, whole } from './attribute.ts'

/** A server as traces see it. */
export interface TracedServer {
  readonly made: { readonly config: ServerConfig }
  readonly server: { status(): Pick<SourceStatus, 'protocolVersion'> }
}

/** What spans tell of a server that something is sent to. */
export interface ServerFacts {
  /** Ready to be written, with a comma between each. */
  readonly attributes: string
  /** What it speaks, once that is known. */
  protocolVersion(): string | undefined
}

/** How a server is reached; of its address nothing is told but host and port, since the rest may hold secrets. */
export function serverFacts({ made: { config }, server }: TracedServer): ServerFacts {
  const protocolVersion = () => server.status().protocolVersion
  if (config.transport === 'stdio') return { attributes: text('network.transport', 'pipe'), protocolVersion }
  const { hostname, port, protocol } = new URL(config.url)
  const attributes = [
    text('network.transport', 'tcp'),
    text('network.protocol.name', 'http'),
    text('server.address', hostname),
    whole('server.port', Number(port) || (protocol === 'https:' ? 443 : 80)),
  ]
  return { attributes: attributes.join(','), protocolVersion }
}
