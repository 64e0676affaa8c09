import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpConfig, JwtConfig } from '../config/schema.ts'
import type { AdminDoor } from './admin/door.ts'
import { metadataPath, resourceOf } from './authenticate/challenge.ts'
import type { Hosts } from './hosts.ts'
import { wrongMethod } from './refusal.ts'

export interface MetadataOptions {
  /** The identity provider of the present configuration; undefined where it has none. */
  jwt(): JwtConfig | undefined
  readonly config: Pick<HttpConfig, 'path'>
  readonly hosts: Hosts
}

/**
 * Tells clients who gives out tokens for this gateway (RFC 9728). It is as public as the gateway's address, so pages of
 * any origin may read it, and nobody needs a credential to learn where to get one.
 */
export function createMetadataDoor({ jwt, config, hosts }: MetadataOptions): AdminDoor {
  return {
    handle(request, response, path) {
      const provider = jwt()
      if (!provider || provider.disabled || !isPlace(path, provider, config.path)) return false
      hosts.check(request.headers.host, undefined)
      answer(request, response, metadataOf(provider, config.path, request.headers.host ?? ''))
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

function metadataOf(jwt: JwtConfig, endpoint: string, host: string): object {
  const scopes = Object.keys(jwt.scopes)
  return {
    resource: resourceOf(jwt) === undefined ? `http://${host}${endpoint}` : (jwt.resource ?? jwt.audience),
    authorization_servers: [jwt.issuer],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    resource_name: 'Toolway',
  }
}

function answer(request: IncomingMessage, response: ServerResponse, metadata: object): void {
  const { method } = request
  response.setHeader('Access-Control-Allow-Origin', '*')
  if (method === 'OPTIONS') {
    response.writeHead(204, { 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' }).end()
    return
  }
  if (method !== 'GET' && method !== 'HEAD') throw wrongMethod(method, 'GET, HEAD')
  const body = JSON.stringify(metadata)
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'max-age=300',
  })
  response.end(method === 'HEAD' ? undefined : body)
}
