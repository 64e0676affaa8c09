import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { json, type TestIssuer } from './issuer.fixture.ts'

export interface TestResource extends AsyncDisposable {
  readonly url: string
  /** The Authorization headers that it received, in order. */
  readonly got: (string | undefined)[]
  /** How the server behaves; tests change it while it runs. */
  readonly behaviour: {
    /** The authorization servers that it trusts, in the order in which it names them. */
    issuers: readonly Pick<TestIssuer, 'url' | 'accepts'>[]
    /** The resource identifier in its metadata. */
    resource?: string
    scopesSupported?: readonly string[]
    /** The scope in its challenge. */
    challengeScope?: string
    /** The scope that tools/call requires. */
    callScope?: string
    /** The URL of its metadata in its challenge; null omits it. */
    metadataAt?: string | null
    answerMetadata?(response: ServerResponse): void
    /** Handles every message. */
    answer?(response: ServerResponse, authorization: string | undefined): void
  }
}

/** A small session-based MCP server that requires OAuth. */
export async function startResource(behaviour: TestResource['behaviour']): Promise<TestResource> {
  const got: TestResource['got'] = []
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith('/.well-known/oauth-protected-resource'))
      return (behaviour.answerMetadata ?? metadata)(response)
    if (request.method !== 'POST') return json(response, 405, {})
    const { id, method, params } = JSON.parse(await text(request)) as {
      id?: number
      method: string
      params?: { protocolVersion?: string }
    }
    const { authorization } = request.headers
    got.push(authorization)
    if (behaviour.answer) return behaviour.answer(response, authorization)
    const token = authorization?.replace(/^Bearer /, '') ?? ''
    const needed = method === 'tools/call' && behaviour.callScope ? [behaviour.callScope] : []
    if (!behaviour.issuers.some((issuer) => issuer.accepts(token)))
      return refuse(response, 401, behaviour.challengeScope)
    if (!behaviour.issuers.some((issuer) => issuer.accepts(token, needed))) {
      return refuse(response, 403, behaviour.callScope, 'insufficient_scope')
    }
    if (id === undefined) return void response.writeHead(202).end()
    json(response, 200, { jsonrpc: '2.0', id, ...answer(method, params?.protocolVersion) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  function metadata(response: ServerResponse): void {
    json(response, 200, {
      resource: behaviour.resource ?? `${origin}/mcp`,
      authorization_servers: behaviour.issuers.map(({ url }) => url),
      ...(behaviour.scopesSupported && { scopes_supported: behaviour.scopesSupported }),
    })
  }

  function refuse(response: ServerResponse, status: number, scope?: string, error?: string): void {
    const { metadataAt = `${origin}/.well-known/oauth-protected-resource/mcp` } = behaviour
    const parts = [
      ...(metadataAt === null ? [] : [`resource_metadata="${metadataAt}"`]),
      ...(scope === undefined ? [] : [`scope="${scope}"`]),
      ...(error === undefined ? [] : [`error="${error}"`]),
    ]
    json(response, status, {}, { 'www-authenticate': `Bearer ${parts.join(', ')}` })
  }

  return {
    url: `${origin}/mcp`,
    got,
    behaviour,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function answer(method: string, protocolVersion = '2025-11-25'): object {
  if (method === 'initialize') {
    return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'resource', version: '1' } } }
  }
  if (method === 'tools/list') return { result: { tools: [{ name: 'work', inputSchema: { type: 'object' } }] } }
  if (method === 'tools/call') return { result: { content: [{ type: 'text', text: 'done' }] } }
  return { error: { code: -32601, message: 'unknown' } }
}
