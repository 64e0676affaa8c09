import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig, JwtConfig } from '../../config/schema.ts'
import { legacyRevisions, modernRevision } from '../../wire/revisions.ts'
import { metadataPath, resourceOf } from '../auth/challenge.ts'
import { methodNotAllowed } from '../errors.ts'
import type { Hosts } from './hosts.ts'

interface PublicDocument {
  readonly type: string
  readonly maxAgeSeconds: number
  readonly hosts: Hosts
  /** Returns the document at a path, given the gateway's address; undefined if there is none. */
  find(path: string): ((address: string) => object) | undefined
}

/** Serves a document that web pages from any origin may read without a credential. */
const publishDocument = ({ type, maxAgeSeconds, hosts, find }: PublicDocument) => ({
  handle(request: IncomingMessage, response: ServerResponse, path: string): boolean {
    const describe = find(path)
    if (!describe) return false
    const { host } = request.headers
    hosts.check(host, undefined)
    response.setHeader('Access-Control-Allow-Origin', '*')
    if (request.method === 'OPTIONS') {
      response.writeHead(204, { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }).end()
      return true
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed(request.method, 'GET, HEAD')
    const body = JSON.stringify(describe(hosts.addressOf(host ?? '')))
    response.writeHead(200, {
      'Content-Type': type,
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': `max-age=${maxAgeSeconds}`,
    })
    response.end(request.method === 'HEAD' ? undefined : body)
    return true
  },
  [Symbol.dispose]() {},
})

export const cardPath = (endpoint: string): string => `${endpoint.replace(/\/$/, '')}/server-card`

interface PublicDocumentOptions {
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}

/** Describes this gateway to clients that have not connected yet (SEP-2127), without revealing its servers. */
export function createServerCardEndpoint({ config, hosts }: PublicDocumentOptions, version: string) {
  const cardOf = (address: string) => ({
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: 'io.github.toolway/toolway',
    title: 'Toolway',
    description: 'One way to every tool: a gateway that puts many MCP servers behind one endpoint.',
    version,
    remotes: [{ type: 'streamable-http', url: address + config.path, supportedProtocolVersions }],
  })
  const find = (path: string) => (path === cardPath(config.path) ? cardOf : undefined)
  return publishDocument({ type: 'application/mcp-server-card+json', maxAgeSeconds: 3600, hosts, find })
}

const supportedProtocolVersions = [modernRevision, ...legacyRevisions]

/** Serves OAuth protected resource metadata (RFC 9728), which names the authorization server. */
export function createOAuthMetadataEndpoint(
  { config, hosts }: PublicDocumentOptions,
  jwt: () => JwtConfig | undefined,
) {
  const find = (path: string) => {
    const provider = jwt()
    if (!provider || provider.disabled || !isPlace(path, provider, config.path)) return undefined
    return (address: string) => metadataOf(provider, address + config.path)
  }
  return publishDocument({ type: 'application/json', maxAgeSeconds: 300, hosts, find })
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
