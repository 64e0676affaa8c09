import { expect, test } from 'vitest'
import { startIssuer } from './issuer.fixture.ts'
import { ask, openOAuth, redirect, serverConfig, signIn } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'

test('B6: a sign-in uses PKCE, names the resource, and requests the scopes of the server', async () => {
  await using issuer = await startIssuer({ metadata: { scopes_supported: ['read', 'offline_access'] } })
  await using resource = await startResource({
    issuers: [issuer],
    challengeScope: 'read',
    scopesSupported: ['read', 'admin'],
  })
  const flow = await openOAuth().begin('files', serverConfig(resource.url), redirect)
  const asked = Object.fromEntries(new URL(flow.url).searchParams)
  expect(asked).toMatchObject({
    response_type: 'code',
    client_id: 'client-1',
    redirect_uri: redirect.href,
    code_challenge_method: 'S256',
    resource: resource.url,
    scope: 'read offline_access',
  })
  expect(asked.state).toMatch(/^[\w-]{43}$/)
  expect(issuer.registrations[0]).toMatchObject({
    redirect_uris: [redirect.href],
    grant_types: ['authorization_code', 'refresh_token'],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
  })
  await flow.finish(await issuer.visit(flow.url))
  expect(issuer.tokenRequests[0]).toMatchObject({ resource: resource.url, client_id: 'client-1' })
  expect(issuer.tokenRequests[0]?.code_verifier).toMatch(/^[\w-]{43}$/)
})

test('B6: scopes: those of the configuration, else of the challenge, else of the metadata, else none', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const scopeOf = async (auth = {}) => {
    const { url } = await openOAuth().begin('files', serverConfig(resource.url, auth), redirect)
    return new URL(url).searchParams.get('scope')
  }
  expect(await scopeOf()).toBeNull()
  resource.behaviour.scopesSupported = ['a', 'b']
  expect(await scopeOf()).toBe('a b')
  resource.behaviour.challengeScope = 'a'
  expect(await scopeOf()).toBe('a')
  expect(await scopeOf({ scopes: ['mine'] })).toBe('mine')
  // A refresh token is requested in addition to the server's scopes, but not to the configured ones.
  issuer.behaviour.metadata = { scopes_supported: ['offline_access'] }
  expect(await scopeOf()).toBe('a offline_access')
  expect(await scopeOf({ scopes: ['mine'] })).toBe('mine')
  expect(await scopeOf({ scopes: ['mine', 'offline_access'] })).toBe('mine offline_access')
})

test('B6: the client id is the configured one, else a metadata URL if supported, else one registered once', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const clientMetadata = 'https://tools.example.com/client.json'
  const oauth = openOAuth()
  const clientOf = async (auth = {}) => {
    const { url } = await oauth.begin('files', serverConfig(resource.url, auth), redirect)
    return new URL(url).searchParams.get('client_id')
  }
  expect(await clientOf({ clientId: 'mine', clientMetadata })).toBe('mine')
  expect(await clientOf({ clientMetadata })).toBe('client-1')
  expect(await clientOf()).toBe('client-1')
  issuer.behaviour.metadata = { client_id_metadata_document_supported: true }
  expect(await clientOf({ clientMetadata })).toBe(clientMetadata)
  issuer.behaviour.metadata = { registration_endpoint: undefined }
  await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow('set auth.clientId')
})

test('B6: the metadata of a server is looked for at its path, then at its root; one without is its own issuer', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer], metadataAt: null })
  const config = serverConfig(resource.url)
  expect((await openOAuth().begin('files', config, redirect)).issuer).toBe(issuer.url)
  const asked: string[] = []
  resource.behaviour.answerMetadata = (response) => {
    asked.push(response.req.url ?? '')
    response.writeHead(404).end()
  }
  await expect(openOAuth().begin('files', config, redirect)).rejects.toThrow(
    'publishes no authorization server metadata',
  )
  expect(asked).toEqual(['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource'])
})

test('B6: an issuer with a path is asked where the two standards put it', async () => {
  await using issuer = await startIssuer()
  const tenant = { url: `${issuer.url}/tenant`, accepts: issuer.accepts }
  await using resource = await startResource({ issuers: [tenant] })
  issuer.behaviour.issuer = tenant.url
  expect((await openOAuth().begin('files', serverConfig(resource.url), redirect)).issuer).toBe(tenant.url)
  issuer.asked.length = 0
  issuer.behaviour.answerMetadata = (response) => void response.writeHead(404).end()
  await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow(
    'publishes no authorization server metadata',
  )
  expect(issuer.asked).toEqual([
    '/.well-known/oauth-authorization-server/tenant',
    '/.well-known/openid-configuration/tenant',
    '/tenant/.well-known/openid-configuration',
  ])
})

test('B6: an answer is taken once, and only by the sign-in it belongs to', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  const [one, other] = [await oauth.begin('files', config, redirect), await oauth.begin('files', config, redirect)]
  const answer = await issuer.visit(one.url)
  await expect(other.finish(answer)).rejects.toThrow('belongs to another sign-in')
  await expect(other.finish(new URLSearchParams({ code: 'stolen' }))).rejects.toThrow('belongs to another sign-in')
  await one.finish(answer)
  await expect(one.finish(answer)).rejects.toThrow('already finished')
  // A code that was already used is rejected, in whichever sign-in it arrives.
  const late = await issuer.visit(other.url)
  await expect(
    other.finish(new URLSearchParams({ ...Object.fromEntries(late), code: answer.get('code') ?? '' })),
  ).rejects.toThrow('invalid_grant')
  expect(issuer.tokenRequests).toHaveLength(2)
})

test('B6: a declined consent is reported as access_denied', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const flow = await openOAuth().begin('files', serverConfig(resource.url), redirect)
  const answer = new URLSearchParams({ state: flow.state, error: 'access_denied', iss: issuer.url })
  await expect(flow.finish(answer)).rejects.toMatchObject({ code: 'access_denied' })
  expect(issuer.tokenRequests).toEqual([])
})

test('B6: sign-ins that return to our own endpoint are identified by their state', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  const url = await oauth.beginHere('files', config, new URL('https://tools.example.com/oauth/callback'))
  expect(issuer.registrations[0]).toMatchObject({ application_type: 'web' })
  const answer = await issuer.visit(url)
  await expect(oauth.finishHere(new URLSearchParams({ code: 'x', state: 'y' }))).rejects.toThrow(
    'unknown or expired sign-in',
  )
  expect(await oauth.finishHere(answer)).toBe('files')
  await expect(oauth.finishHere(answer)).rejects.toThrow('10 min, a fixed limit')
  expect(await ask(oauth, config)).toBe(200)
})

test('B6: the list of grants contains no token', async () => {
  await using issuer = await startIssuer({ expiresIn: 60 })
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await signIn(oauth, config, issuer)
  const kept = await oauth.list()
  expect(kept).toMatchObject([{ server: 'files', principal: '', issuer: issuer.url, renewable: true }])
  expect(JSON.stringify(kept)).not.toMatch(/access-|refresh-/)
  expect(await oauth.forget('files')).toBe(1)
  expect(await oauth.list()).toEqual([])
})

test('V9, B6: a token is not used any more once its grant has been removed', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url, { perPrincipal: true })]
  for (const principal of ['ann', 'bob']) {
    await signIn(oauth, config, issuer, principal)
    expect(await ask(oauth, config, 'tools/list', principal)).toBe(200)
  }
  await oauth.forget('files', 'ann')
  await expect(ask(oauth, config, 'tools/list', 'ann')).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(await ask(oauth, config, 'tools/list', 'bob')).toBe(200)
})
