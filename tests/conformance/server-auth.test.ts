import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startIssuer, type TestIssuer } from '../../src/upstream/oauth/issuer.fixture.ts'
import { startResource, type TestResource } from '../../src/upstream/oauth/resource.fixture.ts'
import { type Provider, startProvider } from '../fixtures/identity-provider.ts'
import { unusedPort } from '../fixtures/listening.ts'
import { goodHeaders, rawRequest, rpc } from '../fixtures/raw-http.ts'
import { type LocalToolway, startToolway } from '../fixtures/toolway.ts'
import { listScenarios, runAuthorization } from './run-authorization.ts'

/**
 * The suite has no scenario for servers as protected resources (its client cannot even send a token), in no suite of its
 * own: what it has for authorization tests clients (client.test.ts) and authorization servers, which Toolway is not. So
 * the suite vouches for the authorization server here, an official client for the way through it, and what the chapter
 * on authorization asks of a server beyond that is checked by hand.
 */
let issuer: TestIssuer
let provider: Provider
let toolway: LocalToolway
let resource: string
let behind: TestResource
const open = new AsyncDisposableStack()

beforeAll(async () => {
  const port = await unusedPort()
  resource = `http://127.0.0.1:${port}/mcp`
  provider = open.use(await startProvider())
  issuer = open.use(
    await startIssuer({
      accessToken: ({ scope, resource: aud }) => provider.token({ iss: issuer.url, aud, scope }),
      metadata: { response_types_supported: ['code'], client_id_metadata_document_supported: true },
    }),
  )
  behind = open.use(await startResource({ issuers: [{ url: issuer.url, accepts: () => true }] }))
  toolway = open.use(
    await startToolway({
      mcpServers: { behind: { url: behind.url } },
      server: { port },
      auth: {
        jwt: {
          issuer: issuer.url,
          audience: resource,
          jwksUrl: provider.url,
          scopes: { 'tools:read': ['reader'], 'tools:write': ['writer'] },
        },
      },
      agents: { reader: { allow: { servers: ['*'] } }, writer: { allow: { servers: ['native'] } } },
    }),
  )
})
afterAll(() => open.disposeAsync())

describe('the suite', () => {
  test('B6: has no authorization scenario for servers; those for authorization servers are not about Toolway', async () => {
    const { servers, authorizationServers } = await listScenarios()
    expect(servers.length).toBeGreaterThan(60)
    // Should a later version of the suite have one, it has to be run here.
    expect(servers.filter((name) => /auth|token|scope|resource-metadata|401|403/.test(name))).toEqual([])
    expect(authorizationServers).toEqual(['authorization-server-metadata-endpoint', 'authorization-code-grant'])
  })

  test('B6: accepts the authorization server of these tests', async () => {
    const checks = await runAuthorization({ issuer: issuer.url, resource, visit: (url) => fetch(url) })
    expect(checks.map(({ id, status, errorMessage = '' }) => `${id} ${status} ${errorMessage}`.trim()).sort()).toEqual([
      'authorization-code-grant SUCCESS',
      'authorization-server-metadata SUCCESS',
      'authorization-server-metadata-cimd SUCCESS',
    ])
  })
})

/** A person with a browser, as an official client sees them. */
function person() {
  const asked: URL[] = []
  const kept = new Map<string, unknown>()
  const keep = (name: string) => (value: unknown) => void kept.set(name, value)
  const keptAs = <T>(name: string) => kept.get(name) as T
  const provider: OAuthClientProvider = {
    redirectUrl: 'http://127.0.0.1:1/callback',
    clientMetadata: { redirect_uris: ['http://127.0.0.1:1/callback'], client_name: 'official' },
    clientInformation: () => keptAs('client'),
    saveClientInformation: keep('client'),
    tokens: () => keptAs('tokens'),
    saveTokens: keep('tokens'),
    discoveryState: () => keptAs('found'),
    saveDiscoveryState: keep('found'),
    codeVerifier: () => keptAs('verifier'),
    saveCodeVerifier: keep('verifier'),
    redirectToAuthorization: (url) => void asked.push(url),
  }
  return { provider, asked }
}

describe('an official client', () => {
  test.each(['2025-11-25', '2026-07-28'])(
    'B6: of %s is led from the first 401 to a token, and from a 403 to one with the scope it lacks',
    async (version) => {
      const { provider: authProvider, asked } = person()
      const connect = async (agent: string) => {
        const client = new Client(
          { name: 'official', version: '1' },
          { versionNegotiation: { mode: version >= '2026-07-28' ? { pin: version } : 'legacy' } },
        )
        const transport = new StreamableHTTPClientTransport(new URL(resource), {
          authProvider,
          requestInit: { headers: { 'toolway-agent': agent } },
        })
        const finish = async () => transport.finishAuth(await issuer.visit(String(asked.at(-1))))
        return { client, transport, finish, connected: client.connect(transport).then(() => client) }
      }
      const stranger = await connect('reader')
      await expect(stranger.connected).rejects.toThrow(/Unauthorized/)
      expect(asked.at(-1)?.searchParams.get('resource')).toBe(resource)
      // Every scope that there is stands in the first challenge: a client may ask for less.
      expect(asked.at(-1)?.searchParams.get('scope')).toBe('tools:read tools:write')
      asked.at(-1)?.searchParams.set('scope', 'tools:read')
      await stranger.finish()
      const reader = await (await connect('reader')).connected
      const { tools } = await reader.listTools()
      expect(tools.length).toBeGreaterThan(0)
      await reader.close()

      const lacking = await connect('writer')
      await expect(lacking.connected).rejects.toThrow(/Unauthorized/)
      expect(asked).toHaveLength(2)
      expect(asked.at(-1)?.searchParams.get('scope')?.split(' ')).toContain('tools:write')
      await lacking.finish()
      const writer = await (await connect('writer')).connected
      expect((await writer.listTools()).tools.length).toBeLessThan(tools.length)
      await writer.close()
    },
  )
})

describe('what the chapter on authorization asks of a server', () => {
  const greeting = rpc(0, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'by-hand', version: '1' },
  })
  const { authorization: _, ...headers } = goodHeaders({ url: '', token: '' })
  const tokenFor = (claims: object = {}) =>
    provider.token({ iss: issuer.url, aud: resource, scope: 'tools:read', ...claims })
  const ask = (given: { method?: string; path?: string; headers?: Record<string, string>; body?: string } = {}) =>
    rawRequest(toolway.url, { body: greeting, ...given, headers: { ...headers, ...given.headers } })
  const bearing = (token: string, more = {}) => ({ headers: { authorization: `Bearer ${token}`, ...more } })
  const told = ({ headers }: { headers: Readonly<Record<string, unknown>> }) => String(headers['www-authenticate'])

  test('B6: without a token every endpoint says 401, where the metadata is, and which scopes there are', async () => {
    for (const [method, path] of [
      ['POST', '/mcp'],
      ['GET', '/mcp'],
      ['DELETE', '/mcp'],
      ['POST', '/mcp/stream'],
      ['POST', '/v1/chat/completions'],
      ['GET', '/v1/models'],
      ['GET', '/admin/api/overview'],
    ] as const) {
      const refused = await ask({ method, path, ...(method !== 'POST' && { body: undefined as never }) })
      expect([path, refused.status]).toEqual([path, 401])
      const place = /^Bearer realm="toolway", resource_metadata="([^"]+)", scope="tools:read tools:write"$/
      const [, at = ''] = place.exec(told(refused)) ?? []
      expect(await (await fetch(at)).json(), path).toMatchObject({
        resource,
        authorization_servers: [issuer.url],
        bearer_methods_supported: ['header'],
      })
    }
  })

  test('B6: the metadata is the same at the root', async () => {
    const at = (path: string) => fetch(new URL(`/.well-known/oauth-protected-resource${path}`, resource))
    expect(await (await at('')).json()).toEqual(await (await at('/mcp')).json())
  })

  test('B6: a token is accepted in the header only, and needed in each request', async () => {
    const token = await tokenFor()
    for (const name of ['access_token', 'token', 'bearer', 'authorization']) {
      expect((await ask({ path: `/mcp?${name}=${token}` })).status, name).toBe(401)
    }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await ask({ headers: form, body: `access_token=${token}` })).status).toBe(401)
    expect((await ask({ headers: { authorization: token } })).status).toBe(401)
    expect((await ask({ headers: { authorization: `Basic ${token}` } })).status).toBe(401)
    const entered = await ask(bearing(token))
    expect(entered.status).toBe(200)
    const session = { 'mcp-session-id': String(entered.headers['mcp-session-id']) }
    expect((await ask({ headers: session, body: rpc(1, 'ping') })).status).toBe(401)
    expect((await ask({ ...bearing(token, session), body: rpc(1, 'ping') })).status).toBe(200)
  })

  test('B6: tokens with a wrong audience, issuer or time, or without a subject are 401; a good one without a scope is 403', async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const claims of [
      { aud: behind.url },
      { aud: new URL(resource).origin },
      { aud: `${resource}/` },
      { iss: `${issuer.url}/` },
      { iss: 'https://id.example.com' },
      { exp: now - 60 },
      { nbf: now + 60 },
      { sub: undefined },
    ]) {
      const refused = await ask(bearing(await tokenFor(claims)))
      expect([claims, refused.status]).toEqual([claims, 401])
      expect(told(refused)).toMatch(/resource_metadata=".*error="invalid_token"$/)
    }
    const lacking = await ask(bearing(await tokenFor({ scope: 'openid' })))
    expect(lacking.status).toBe(403)
    expect(told(lacking)).toMatch(/resource_metadata=".*scope="tools:read tools:write", error="insufficient_scope"$/)
    expect((await ask(bearing(await tokenFor({ exp: now - 20, nbf: now + 20 })))).status).toBe(200)
    expect((await ask(bearing(await tokenFor({ aud: ['https://other.example', resource] })))).status).toBe(200)
  })

  test('B6: a token of a client is never passed on to a server', async () => {
    const token = await tokenFor()
    const entered = await ask(bearing(token))
    const session = { 'mcp-session-id': String(entered.headers['mcp-session-id']) }
    const before = behind.got.length
    const body = rpc(1, 'tools/call', { name: 'behind__work', arguments: {} })
    expect((await ask({ ...bearing(token, session), body })).text).toContain('done')
    expect(behind.got.slice(before)).toContain(undefined)
    expect(behind.got.filter((header) => header !== undefined)).toEqual([])
  })
})
