import { afterEach, beforeEach, expect, test } from 'vitest'
import { openJwtFixture, refused } from './jwt.fixture.ts'

let jwt: Awaited<ReturnType<typeof openJwtFixture>>
beforeEach(async () => {
  jwt = await openJwtFixture()
})
afterEach(() => jwt[Symbol.asyncDispose]())

const scopes = { 'tools:read': ['reader'], 'tools:write': ['writer', 'reader'] }
const place = 'resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"'

test('B6, G7: the scopes of a token say which agents it may be, beside its claim', async () => {
  const enter = jwt.authenticator({ scopes })
  const agentsFor = async (claims: object) => (await enter(await jwt.provider.token({ ...claims }))).agents
  expect(await agentsFor({ scope: 'openid tools:read' })).toEqual(['reader'])
  expect(await agentsFor({ scope: 'tools:read tools:write' })).toEqual(['reader', 'writer'])
  expect(await agentsFor({ scp: ['tools:write'] })).toEqual(['writer', 'reader'])
  expect(await agentsFor({ scope: 'tools:read', agent: 'boss' })).toEqual(['boss', 'reader'])
})

test('B6: a token without any of them gets an error that names them, and not the default agent', async () => {
  const enter = jwt.authenticator({ scopes })
  for (const claims of [{}, { scope: '' }, { scope: 'openid' }, { scope: 'toString' }, { scope: 7 }, { scp: [{}] }]) {
    const { status, details } = await refused(enter(await jwt.provider.token(claims)))
    expect(status).toBe(403)
    expect(details.headers).toEqual({
      'WWW-Authenticate': `Bearer realm="toolway", ${place}, scope="tools:read tools:write", error="insufficient_scope"`,
    })
  }
})

test('B6: a token asking for an agent of another scope gets an error with that scope', async () => {
  const identity = await jwt.authenticator({ scopes })(await jwt.provider.token({ scope: 'tools:read' }))
  expect(identity.stepUp?.('writer')).toBe(
    `Bearer realm="toolway", ${place}, scope="tools:write", error="insufficient_scope"`,
  )
  expect(identity.stepUp?.('nobody')).toBeUndefined()
})

test('B6: an error names the resource metadata if the URL of the endpoint is known', async () => {
  const headerFor = async (config: object) => (await refused(jwt.authenticator(config)('a.b.c'))).details.headers
  expect(await headerFor({})).toEqual({ 'WWW-Authenticate': `Bearer realm="toolway", ${place}, error="invalid_token"` })
  expect(await headerFor({ resource: 'https://gate.example/x/mcp' })).toEqual({
    'WWW-Authenticate':
      'Bearer realm="toolway", resource_metadata="https://gate.example/.well-known/oauth-protected-resource/x/mcp", error="invalid_token"',
  })
  // An audience that is only a name says nothing about where that is: clients look at the usual place.
  expect(await headerFor({ audience: 'toolway' })).toEqual({
    'WWW-Authenticate': 'Bearer realm="toolway", error="invalid_token"',
  })
})
