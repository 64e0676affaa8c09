import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config, HttpConfig, JwtConfig } from '../../config/schema.ts'
import { endpointPath } from '../../core/endpoint-path.ts'
import { legacyRevisions, modernRevision } from '../../wire/revisions.ts'
import { metadataPath, resourceOf } from '../auth/challenge.ts'
import { methodNotAllowed } from '../errors.ts'
import type { Hosts } from './hosts.ts'

interface PublicDocument {
  readonly type: string
  readonly maxAgeSeconds: number
  readonly hosts: Hosts
  /**
   * Returns the document at a path, given the gateway's address and the query; undefined if there is none. The document
   * may turn out to be missing.
   */
  find(path: string): ((address: string, query: URLSearchParams) => object | undefined) | undefined
}

/** Serves a document that web pages from any origin may read without a credential. */
export const publishDocument = ({ type, maxAgeSeconds, hosts, find }: PublicDocument) => ({
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
    const query = new URLSearchParams(request.url?.split('?')[1])
    const found = describe(hosts.addressOf(host ?? ''), query)
    const body = JSON.stringify(found ?? { error: 'Server not found' })
    response.writeHead(found ? 200 : 404, {
      'Content-Type': type,
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': `max-age=${maxAgeSeconds}`,
    })
    response.end(request.method === 'HEAD' ? undefined : body)
    return true
  },
  [Symbol.dispose]() {},
})

export const cardName = 'server-card'

export interface PublicDocumentOptions {
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
  /** The named endpoints. */
  endpoints(): Config['endpoints']
}

/** The endpoint to which one of `pathsOf` belongs; its name is undefined if it is the one without a name. */
function findEndpoint(path: string, endpoints: Config['endpoints'], pathsOf: (name?: string) => readonly string[]) {
  const names = [undefined, ...Object.keys(endpoints)]
  const found = names.findIndex((name) => pathsOf(name).includes(path))
  return found < 0 ? undefined : { name: names[found] }
}

/** Describes this gateway to clients that have not connected yet (SEP-2127), without revealing its servers. */
export function createServerCardEndpoint({ config, hosts, endpoints }: PublicDocumentOptions, version: string) {
  const cardOf = (endpoint: string | undefined) => (address: string) => ({
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: `io.github.toolway/toolway${endpoint === undefined ? '' : `-${endpoint}`}`,
    title: endpoint === undefined ? 'Toolway' : `Toolway: ${endpoint}`,
    description: 'One way to every tool: a gateway that puts many MCP servers behind one endpoint.',
    version,
    remotes: [
      { type: 'streamable-http', url: address + endpointPath(config.path, endpoint), supportedProtocolVersions },
    ],
  })
  const find = (path: string) => {
    const found = findEndpoint(path, endpoints(), (name) => [endpointPath(endpointPath(config.path, name), cardName)])
    return found && cardOf(found.name)
  }
  return publishDocument({ type: 'application/mcp-server-card+json', maxAgeSeconds: 3600, hosts, find })
}

const supportedProtocolVersions = [modernRevision, ...legacyRevisions]

/** Serves OAuth protected resource metadata (RFC 9728), which names the authorization server. */
export function createOAuthMetadataEndpoint(
  { config, hosts, endpoints }: PublicDocumentOptions,
  jwt: () => JwtConfig | undefined,
) {
  const find = (path: string) => {
    const provider = jwt()
    if (!provider || provider.disabled) return undefined
    const found = findEndpoint(path, endpoints(), (name) => metadataPaths(name, provider, config.path))
    return found && ((address: string) => metadataOf(provider, address + endpointPath(config.path, found.name)))
  }
  return publishDocument({ type: 'application/json', maxAgeSeconds: 300, hosts, find })
}

/** The metadata paths that clients derive from an endpoint or its public URL; without a name, also from the root. */
function metadataPaths(name: string | undefined, jwt: JwtConfig, path: string): string[] {
  const known = [path, resourceOf(jwt)?.pathname ?? '/'].map((base) => endpointPath(base, name))
  return [...known, ...(name === undefined ? ['/', endpointPath(path, 'stream')] : [])].map(metadataPath)
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
