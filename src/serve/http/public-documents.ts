import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig, JwtConfig } from '../../config/schema.ts'
import { legacyRevisions, modernRevision } from '../../wire/revisions.ts'
import { metadataPath, resourceOf } from '../auth/challenge.ts'
import { methodNotAllowed } from '../errors.ts'
import type { Hosts } from './hosts.ts'

/** Serves a document that web pages from any origin may read without a credential. */
function publishDocument(
  { method }: IncomingMessage,
  response: ServerResponse,
  published: { readonly type: string; readonly body: object; readonly maxAgeSeconds: number },
): void {
  response.setHeader('Access-Control-Allow-Origin', '*')
  if (method === 'OPTIONS') {
    response.writeHead(204, { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }).end()
    return
  }
  if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method, 'GET, HEAD')
  const body = JSON.stringify(published.body)
  response.writeHead(200, {
    'Content-Type': published.type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': `max-age=${published.maxAgeSeconds}`,
  })
  response.end(method === 'HEAD' ? undefined : body)
}

export const cardPath = (endpoint: string): string => `${endpoint.replace(/\/$/, '')}/server-card`

/** Describes this gateway to clients that have not connected yet (SEP-2127), without revealing its servers. */
export function createServerCardEndpoint(options: {
  readonly info: { readonly version: string }
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}) {
  const { info, config, hosts } = options
  const place = cardPath(config.path)
  return {
    handle(request: IncomingMessage, response: ServerResponse, path: string): boolean {
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
      publishDocument(request, response, { type: 'application/mcp-server-card+json', body, maxAgeSeconds: 3600 })
      return true
    },
    [Symbol.dispose]() {},
  }
}

const supportedProtocolVersions = [modernRevision, ...legacyRevisions]

/** Serves OAuth protected resource metadata (RFC 9728), which names the authorization server. */
export function createOAuthMetadataEndpoint(options: {
  jwt(): JwtConfig | undefined
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}) {
  const { jwt, config, hosts } = options
  return {
    handle(request: IncomingMessage, response: ServerResponse, path: string): boolean {
      const provider = jwt()
      if (!provider || provider.disabled || !isPlace(path, provider, config.path)) return false
      hosts.check(request.headers.host, undefined)
      const body = metadataOf(provider, hosts.addressOf(request.headers.host ?? '') + config.path)
      publishDocument(request, response, { type: 'application/json', body, maxAgeSeconds: 300 })
      return true
    },
    [Symbol.dispose]() {},
  }
}

/** Whether this is a metadata path that clients derive from the root, the endpoint or the public URL. */
function isPlace(path: string, jwt: JwtConfig, endpoint: string): boolean {
  const stream = `${endpoint.replace(/\/$/, '')}/stream`
  return ['/', endpoint, stream, resourceOf(jwt)?.pathname ?? '/'].some((one) => metadataPath(one) === path)
}

function metadataOf(jwt: JwtConfig, address: string): object {
  const scopes = Object.keys(jwt.scopes)
  return {
    resource: resourceOf(jwt) === undefined ? address : (jwt.resource ?? jwt.audience),
    authorization_servers: [jwt.issuer],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    resource_name: 'Toolway',
  }
}
