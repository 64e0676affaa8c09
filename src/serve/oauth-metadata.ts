import type { HttpConfig, JwtConfig } from '../config/schema.ts'
import type { AdminDoor } from './admin/door.ts'
import { metadataPath, resourceOf } from './authenticate/challenge.ts'
import type { Hosts } from './hosts.ts'
import { publish } from './published.ts'

export interface MetadataOptions {
  /** The identity provider of the present configuration; undefined where it has none. */
  jwt(): JwtConfig | undefined
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}

/** Tells clients who gives out tokens for this gateway (RFC 9728): nobody needs a credential to learn where to get one. */
export function createMetadataDoor({ jwt, config, hosts }: MetadataOptions): AdminDoor {
  return {
    handle(request, response, path) {
      const provider = jwt()
      if (!provider || provider.disabled || !isPlace(path, provider, config.path)) return false
      hosts.check(request.headers.host, undefined)
      const body = metadataOf(provider, hosts.addressOf(request.headers.host ?? '') + config.path)
      publish(request, response, { type: 'application/json', body, maxAgeSeconds: 300 })
      return true
    },
    [Symbol.dispose]() {},
  }
}

/** At the root, and at the path of the endpoint: as it is here, or as it is known outside. */
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
