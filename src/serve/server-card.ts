import type { HttpConfig } from '../config/schema.ts'
import { legacyRevisions, modernRevision } from '../wire/revisions.ts'
import type { AdminDoor } from './admin/door.ts'
import type { Hosts } from './hosts.ts'
import { publish } from './published.ts'

export interface CardOptions {
  readonly info: { readonly version: string }
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}

/** Where the card of an endpoint lies: right below it. */
export const cardPath = (endpoint: string): string => `${endpoint.replace(/\/$/, '')}/server-card`

/**
 * Tells clients, before they connect, that there is an MCP server here and what it speaks (SEP-2127). Nothing of what
 * is behind the gateway: that is for those who have been let in.
 */
export function createCardDoor({ info, config, hosts }: CardOptions): AdminDoor {
  const place = cardPath(config.path)
  return {
    handle(request, response, path) {
      if (path !== place) return false
      const { host = '' } = request.headers
      hosts.check(host, undefined)
      const body = {
        $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
        name: 'io.github.toolway/toolway',
        title: 'Toolway',
        description: 'One way to every tool: a gateway that puts many MCP servers behind one endpoint.',
        version: info.version,
        remotes: [{ type: 'streamable-http', url: hosts.addressOf(host) + config.path, supportedProtocolVersions }],
      }
      publish(request, response, { type: 'application/mcp-server-card+json', body, maxAgeSeconds: 3600 })
      return true
    },
    [Symbol.dispose]() {},
  }
}

const supportedProtocolVersions = [modernRevision, ...legacyRevisions]
