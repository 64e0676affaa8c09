import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import { endpointPath } from '../../core/endpoint-path.ts'
import { type PublicDocumentOptions, publishDocument } from './public-documents.ts'

const maxRegistryPage = 100

/** What the registry says about connecting to this gateway. */
export type PublishedConfig = Pick<Config, 'registry' | 'auth'>

interface RegistryOptions extends PublicDocumentOptions {
  readonly version: string
  readonly clock: Clock
  published(): PublishedConfig
}

/**
 * Serves the endpoints as remote servers in the registry API v0.1, for editors that allow only the servers of a
 * registry. It reveals their names and descriptions without a credential, and nothing else.
 */
export function createRegistryEndpoint({ config, hosts, endpoints, version, clock, published }: RegistryOptions) {
  const since = new Date(clock.now()).toISOString()
  const times = { publishedAt: since, updatedAt: since, statusChangedAt: since }
  const all = (address: string) => {
    const entry = (name: string | undefined, title: string, description: string) => ({
      server: {
        $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
        name: `${namespaceOf(address)}/${name ?? mainName}`,
        ...{ title, description: description.slice(0, 100), version },
        remotes: [
          { type: 'streamable-http', url: address + endpointPath(config.path, name), ...tokenHeader(published()) },
        ],
      },
      _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true, ...times } },
    })
    const named = Object.entries(endpoints()).map(([name, { description }]) =>
      entry(name, `Toolway: ${name}`, description || `The endpoint ${name} of Toolway.`),
    )
    return [entry(undefined, 'Toolway', 'All tools of this gateway.'), ...named]
  }
  const page = (address: string, query: URLSearchParams) => {
    const search = query.get('search')?.toLowerCase() ?? ''
    const wanted = query.get('version') ?? 'latest'
    const found = all(address).filter(({ server }) => server.name.toLowerCase().includes(search))
    return registryPage(wanted === 'latest' || wanted === version ? found : [], query)
  }
  const find = (path: string) => {
    const match = pathForm.exec(path)
    if (!match || !published().registry.serve) return undefined
    const [, name, which] = match
    if (name === undefined) return page
    return (address: string, query: URLSearchParams) => {
      const found = all(address).filter(({ server }) => [server.name, encodeURIComponent(server.name)].includes(name))
      if (which === undefined) return found.length === 0 ? undefined : registryPage(found, query)
      return ['latest', version, encodeURIComponent(version)].includes(which) ? found[0] : undefined
    }
  }
  return publishDocument({ type: 'application/json', maxAgeSeconds: 60, hosts, find })
}

const pathForm = /^\/v0\.1\/servers(?:\/(.+)\/versions(?:\/([^/]+))?)?$/

/** The name of the endpoint without a name. No endpoint can have it, because it contains a dot. */
const mainName = 'all.tools'

/** `toolway.` and the host's name, with only those characters that namespaces may contain. */
const namespaceOf = (address: string): string =>
  `toolway.${new URL(address).hostname.replace(/[^\w.-]+|_/g, '-').replace(/^-|-$/g, '')}`

function registryPage<Item extends { server: { name: string } }>(all: readonly Item[], query: URLSearchParams) {
  const after = query.get('cursor')
  const start = after === null ? 0 : all.findIndex(({ server }) => server.name === after) + 1
  const limit = Math.min(Number(query.get('limit')) || maxRegistryPage, maxRegistryPage)
  const servers = all.slice(start, start + limit)
  const nextCursor = start + limit < all.length ? servers.at(-1)?.server.name : undefined
  return { servers, metadata: { ...(nextCursor && { nextCursor }), count: servers.length } }
}

/** The header with the token that the editor asks for, unless clients need none or get one from an identity provider. */
function tokenHeader({ auth: { token, jwt } }: PublishedConfig) {
  if (token === 'none' || (jwt && !jwt.disabled)) return {}
  const variables = {
    token: { description: 'The token or an API key of this gateway.', isRequired: true, isSecret: true },
  }
  return { headers: [{ name: 'Authorization', value: 'Bearer {token}', isRequired: true, isSecret: true, variables }] }
}
