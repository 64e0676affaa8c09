import { expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { createTestAccess } from '../access.fixture.ts'
import { openJwtFixture } from '../auth/jwt.fixture.ts'
import { openTestServer } from './server.fixture.ts'

const scopes = { 'tools:read': ['reader'] }

const endpoints = { research: { servers: [], tools: {} } }

async function openServer(changes: object = {}) {
  const identity = await openJwtFixture()
  const jwt = identity.provider.config({ scopes, ...changes })
  const server = await openTestServer({
    jwt: () => jwt,
    endpoints,
    authenticate: () => (given) => identity.authenticator(changes)(given ?? ''),
  })
  const get = (path: string, method: 'GET' | 'POST' | 'OPTIONS' = 'GET', headers = {}) =>
    server.fetchRaw({ path, method, headers: { origin: 'https://page.example', authorization: undefined, ...headers } })
  return {
    get,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await identity[Symbol.asyncDispose]()
    },
  }
}

const root = '/.well-known/oauth-protected-resource'

test('B6: at the root and at the path of the endpoint, the metadata names the authorization server', async () => {
  await using server = await openServer()
  for (const path of [root, `${root}/mcp`, `${root}/mcp/stream`]) {
    const { statusCode, headers, body } = await server.get(path)
    expect(statusCode, path).toBe(200)
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(await body.json()).toEqual({
      resource: 'https://tools.example.com/mcp',
      authorization_servers: ['https://id.example.com'],
      scopes_supported: ['tools:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Toolway',
    })
  }
  expect((await server.get(root, 'OPTIONS')).statusCode).toBe(204)
  expect((await server.get(root, 'POST')).statusCode).toBe(405)
})

test('B6: behind a proxy it is published for the path that is known outside', async () => {
  await using server = await openServer({ resource: 'https://gate.example/tools/mcp' })
  const { statusCode, body } = await server.get(`${root}/tools/mcp`)
  expect(statusCode).toBe(200)
  expect(await body.json()).toMatchObject({ resource: 'https://gate.example/tools/mcp' })
})

test('B6: without a provider, elsewhere, or for another host, there is nothing', async () => {
  await using server = await openServer()
  expect((await server.get(`${root}/other`)).statusCode).toBe(404)
  expect((await server.get('/.well-known/openid-configuration')).statusCode).toBe(404)
  expect((await server.get(root, 'GET', { host: 'evil.example' })).statusCode).toBe(403)
  await using off = await openServer({ disabled: true })
  expect((await off.get(root)).statusCode).toBe(404)
  await using none = await openTestServer()
  expect((await none.fetchRaw({ path: root, method: 'GET' })).statusCode).toBe(404)
})

test('B6: a request for an agent of another scope gets 403 and that scope', async () => {
  await using identity = await openJwtFixture()
  const config = { scopes: { ...scopes, 'tools:write': ['writer'] } }
  const access = Object.assign(createTestAccess(), {
    agentOf({ agents }: { agents: readonly string[] | '*' }, asked = 'reader'): string {
      if (agents.includes(asked)) return asked
      throw new ToolwayError('INVALID_AGENT_ID', 'not yours')
    },
  })
  const enter = identity.authenticator(config)
  await using server = await openTestServer({ access, authenticate: () => (given) => enter((given ?? '').slice(7)) })
  const authorization = `Bearer ${await identity.provider.token({ scope: 'tools:read' })}`
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  const answerTo = (agent: string) => server.raw({ headers: { authorization, 'toolway-agent': agent }, body })
  expect((await answerTo('reader')).status).toBe(200)
  const refused = await answerTo('writer')
  expect(refused.status).toBe(403)
  expect(refused.headers['www-authenticate']).toContain('scope="tools:write", error="insufficient_scope"')
  expect((await answerTo('boss')).headers['www-authenticate']).toBeUndefined()
})

test('V15: the metadata of an endpoint names the resource that tokens are for, or else its own URL', async () => {
  await using known = await openServer({ resource: 'https://gate.example/tools/mcp' })
  for (const path of [`${root}/mcp/research`, `${root}/tools/mcp/research`])
    expect(await (await known.get(path)).body.json()).toMatchObject({ resource: 'https://gate.example/tools/mcp' })
  expect((await known.get(`${root}/mcp/other`)).statusCode).toBe(404)
  await using unknown = await openServer({ audience: 'api://toolway' })
  const metadata = (await (await unknown.get(`${root}/mcp/research`)).body.json()) as { resource: string }
  expect(metadata.resource).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\/research$/)
})
