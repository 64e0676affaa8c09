import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { basicAuth } from '../../lib/url.ts'
import { memoryLocks } from '../../stores/vault.ts'
import { json, startIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, redirect, serverConfig, signIn } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'

const grantTypes = (requests: readonly Record<string, string>[]) => requests.map(({ grant_type }) => grant_type)

test('B6: without a grant a call fails with the command to run, and succeeds after a sign-in', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await expect(ask(oauth, config)).rejects.toMatchObject({
    code: 'AUTH_REQUIRED',
    message: 'files needs a sign-in. The operator signs in with: toolway auth files',
  })
  // The need for a sign-in is remembered, so the server is not asked again.
  await expect(ask(oauth, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(resource.got).toEqual([undefined])
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  expect(resource.got.at(-1)).toMatch(/^Bearer access-/)
})

test('B6: a grant that another process has got is found', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const vault = memoryVault()
  const [running, command, config] = [openOAuth({ vault }), openOAuth({ vault }), serverConfig(resource.url)]
  await expect(ask(running, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  await signIn(command, config, issuer)
  expect(await ask(running, config)).toBe(200)
})

test('B6: a sign-in or sign-out applies within seconds, even if the previous token has not expired', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [vault, clock, config] = [memoryVault(), createManualClock(), serverConfig(resource.url)]
  const [running, command] = [openOAuth({ vault, clock }), openOAuth({ vault, clock })]
  await signIn(running, config, issuer)
  expect(await ask(running, config)).toBe(200)
  await signIn(command, config, issuer)
  clock.advance(3_000)
  expect(await ask(running, config)).toBe(200)
  expect(new Set(resource.got.filter(Boolean)).size).toBe(2)
  await command.forget('files')
  clock.advance(3_000)
  await expect(ask(running, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
})

test('B6: a sign-out during a renewal removes the renewed grant, too', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [vault, locks, clock, config] = [memoryVault(), memoryLocks(), createManualClock(), serverConfig(resource.url)]
  const [running, command] = [openOAuth({ vault, locks, clock }), openOAuth({ vault, locks, clock })]
  await signIn(running, config, issuer)
  expect(await ask(running, config)).toBe(200)
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  issuer.behaviour.accessToken = () => {
    asked.resolve()
    return answered.promise
  }
  clock.advance(99_000)
  const call = ask(running, config)
  await asked.promise
  const signedOut = command.forget('files')
  await new Promise((resolve) => setTimeout(resolve, 50))
  answered.resolve('access-renewed')
  await Promise.allSettled([call, signedOut])
  expect([...vault.kept.keys()]).toEqual([])
  clock.advance(3_000)
  await expect(ask(running, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
})

test('B6: a token is used until it expires while the stored grant cannot be read', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [kept, clock, config] = [memoryVault(), createManualClock(), serverConfig(resource.url)]
  let broken = false
  const read = async (key: string) => {
    if (broken) throw new Error('EMFILE')
    return kept.read(key)
  }
  const oauth = openOAuth({ vault: { ...kept, read }, clock })
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  broken = true
  clock.advance(99_000)
  expect(await ask(oauth, config)).toBe(200)
  clock.advance(1_000)
  await expect(ask(oauth, config)).rejects.toThrow('EMFILE')
})

test('B10: however many calls find their token expired, in however many processes, it is refreshed once', async () => {
  await using issuer = await startIssuer({ expiresIn: 3_600 })
  await using resource = await startResource({ issuers: [issuer] })
  const config = serverConfig(resource.url)
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 3 }), async (calls, processes) => {
      const [vault, locks, clock] = [memoryVault(), memoryLocks(), createManualClock()]
      const oauths = Array.from({ length: processes }, () => openOAuth({ vault, locks, clock }))
      await signIn(oauths[0]!, config, issuer)
      for (const oauth of oauths) expect(await ask(oauth, config)).toBe(200)
      clock.advance(3_600_000)
      const before = issuer.tokenRequests.length
      const statuses = await Promise.all(
        oauths.flatMap((oauth) => Array.from({ length: calls }, () => ask(oauth, config))),
      )
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(grantTypes(issuer.tokenRequests.slice(before))).toEqual(['refresh_token'])
    }),
    runs(2, 12),
  )
})

test('B10: tokens that are refused before their time are replaced once for all, and calls are sent again', async () => {
  await using issuer = await startIssuer({ expiresIn: 3_600 })
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  issuer.revoke()
  expect(await Promise.all(Array.from({ length: 8 }, () => ask(oauth, config)))).toEqual(Array(8).fill(200))
  expect(grantTypes(issuer.tokenRequests)).toEqual(['authorization_code', 'refresh_token'])
  // If the server rejects every token, Toolway stops requesting new ones.
  issuer.revoke()
  await expect(ask(oauth, config)).rejects.toThrow('rejected a new token')
  expect(issuer.tokenRequests).toHaveLength(2)
})

test('B6: a server whose clock is ahead rejects tokens early, and each of them is renewed', async () => {
  await using issuer = await startIssuer({ expiresIn: 40 })
  await using resource = await startResource({ issuers: [issuer] })
  const [clock, config] = [createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ clock })
  await signIn(oauth, config, issuer)
  for (let round = 0; round < 4; round++) {
    expect(await ask(oauth, config)).toBe(200)
    clock.advance(20_000)
    issuer.revoke()
  }
  expect(await ask(oauth, config)).toBe(200)
  // A token that is rejected at once is not renewed again.
  issuer.revoke()
  await expect(ask(oauth, config)).rejects.toThrow('rejected a new token')
})

test('B6: each refresh token is used once, and the one that came last is kept', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [vault, clock, config] = [memoryVault(), createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ vault, clock })
  await signIn(oauth, config, issuer)
  for (let round = 0; round < 3; round++) {
    clock.advance(100_000)
    expect(await ask(oauth, config)).toBe(200)
  }
  // A new process continues with the stored grant.
  clock.advance(100_000)
  expect(await ask(openOAuth({ vault, clock }), config)).toBe(200)
  const used = issuer.tokenRequests.flatMap(({ refresh_token }) => refresh_token ?? [])
  expect(new Set(used).size).toBe(4)
})

test('B6: a grant that has ended is forgotten and asked for; a silent authorization server ends none', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [vault, clock, config] = [memoryVault(), createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ vault, clock })
  await signIn(oauth, config, issuer)
  clock.advance(100_000)
  issuer.behaviour.refuseRefresh = { status: 503, error: 'temporarily_unavailable' }
  await expect(ask(oauth, config)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', details: { unsent: true } })
  expect(await oauth.list()).toHaveLength(1)
  issuer.behaviour.refuseRefresh = { status: 400, error: 'invalid_grant' }
  await expect(ask(oauth, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(await oauth.list()).toEqual([])
})

test('B6: if the authorization server has lost the client, the next sign-in registers another one', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [clock, config] = [createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ clock })
  await signIn(oauth, config, issuer)
  clock.advance(100_000)
  issuer.behaviour.refuseRefresh = { status: 401, error: 'invalid_client' }
  // The refresh token is not sent again and again, but the error stays the same.
  for (let call = 0; call < 3; call++) {
    await expect(ask(oauth, config)).rejects.toThrow('needs a new sign-in')
    clock.advance(5_000)
  }
  expect(grantTypes(issuer.tokenRequests)).toEqual(['authorization_code', 'refresh_token'])
  issuer.behaviour.refuseRefresh = undefined
  await signIn(oauth, config, issuer)
  expect(issuer.registrations).toHaveLength(2)
  expect(await ask(oauth, config)).toBe(200)
})

test('B6: a refused renewal is tried again after a minute', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using resource = await startResource({ issuers: [issuer] })
  const [clock, config] = [createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ clock })
  await signIn(oauth, config, issuer)
  clock.advance(100_000)
  issuer.behaviour.refuseRefresh = { status: 401, error: 'invalid_client' }
  await expect(ask(oauth, config)).rejects.toThrow('needs a new sign-in')
  issuer.behaviour.refuseRefresh = undefined
  clock.advance(60_000)
  expect(await ask(oauth, config)).toBe(200)
})

test('B6: a call that lacks a scope says which, and the next sign-in asks for it beside those there were', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer], challengeScope: 'read', callScope: 'write' })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await expect(ask(oauth, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  await expect(ask(oauth, config, 'tools/call')).rejects.toThrow('files needs more scopes than were granted (write).')
  // Other requests still succeed with the existing token.
  expect(await ask(oauth, config)).toBe(200)
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config, 'tools/call')).toBe(200)
})

test('B6: a sign-in for more scopes than the client is registered for registers another client', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer], challengeScope: 'read', callScope: 'write' })
  const [vault, config] = [memoryVault(), serverConfig(resource.url)]
  const oauth = openOAuth({ vault })
  await signIn(oauth, config, issuer)
  await signIn(oauth, config, issuer)
  expect(issuer.registrations).toMatchObject([{ scope: 'read' }])
  await expect(ask(oauth, config, 'tools/call')).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  // Version 0.1 stored clients without their scopes.
  for (const [key, text] of vault.kept)
    if (key.startsWith('["client"')) vault.kept.set(key, text.replace(/,"scopes":\[[^\]]*\]/, ''))
  await signIn(oauth, config, issuer)
  expect(issuer.registrations).toMatchObject([{ scope: 'read' }, { scope: 'read write' }])
  expect(await ask(oauth, config, 'tools/call')).toBe(200)
  // Later sign-ins request at least the scopes of the first one.
  expect((await oauth.begin('files', config, redirect)).scopes).toEqual(['read'])
})

test('B6: scopes that a call lacked but the authorization server rejects do not block later sign-ins', async () => {
  await using issuer = await startIssuer({ unknownScopes: ['write'] })
  await using resource = await startResource({ issuers: [issuer], challengeScope: 'read', callScope: 'write' })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await signIn(oauth, config, issuer)
  await expect(ask(oauth, config, 'tools/call')).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  await expect(signIn(oauth, config, issuer)).rejects.toMatchObject({ code: 'invalid_scope' })
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
})

test('B6: another authorization server gets nothing of what the first one gave', async () => {
  await using first = await startIssuer({ expiresIn: 100 })
  await using second = await startIssuer()
  await using resource = await startResource({ issuers: [first] })
  const [clock, config] = [createManualClock(), serverConfig(resource.url)]
  const oauth = openOAuth({ clock })
  await signIn(oauth, config, first)
  expect(await ask(oauth, config)).toBe(200)
  resource.behaviour.issuers = [second]
  await expect(ask(oauth, config)).rejects.toThrow('its authorization server has changed')
  expect([...second.tokenRequests, ...second.registrations]).toEqual([])
  await signIn(oauth, config, second)
  expect(await ask(oauth, config)).toBe(200)
  expect(second.registrations).toHaveLength(1)
  // When the server returns to the first authorization server, its grant is used again; the other one never received
  // it.
  resource.behaviour.issuers = [first]
  clock.advance(100_000)
  expect(await ask(oauth, config)).toBe(200)
  expect(JSON.stringify(second.tokenRequests)).not.toContain('refresh-')
})

test('B6: with perPrincipal, the grant of another principal is never used', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url, { perPrincipal: true })]
  await signIn(oauth, config, issuer, 'ann')
  await signIn(oauth, config, issuer, 'bob')
  expect(await ask(oauth, config, 'tools/list', 'ann')).toBe(200)
  expect(await ask(oauth, config, 'tools/list', 'bob')).toBe(200)
  expect(new Set(resource.got.filter(Boolean)).size).toBe(2)
  for (const stranger of ['eve', undefined]) {
    await expect(ask(oauth, config, 'tools/list', stranger)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  }
  expect(await oauth.forget('files', 'ann')).toBe(1)
  expect((await oauth.list()).map(({ principal }) => principal)).toEqual(['bob'])
})

test('B6: a server that moves to another address does not get the grant of the old one', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using moved = await startResource({ issuers: [issuer] })
  const oauth = openOAuth()
  await signIn(oauth, serverConfig(resource.url), issuer)
  await expect(ask(oauth, serverConfig(moved.url))).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(moved.got).toEqual([undefined])
})

const itself = { grant: 'client_credentials', clientId: 'toolway', clientSecret: 'the client secret' }

test('B6: Toolway gets tokens for itself where it is a client with a secret', async () => {
  await using issuer = await startIssuer({
    expiresIn: 100,
    metadata: { token_endpoint_auth_methods_supported: ['client_secret_post'] },
  })
  await using resource = await startResource({ issuers: [issuer], challengeScope: 'read', callScope: 'write' })
  const [clock, config] = [createManualClock(), serverConfig(resource.url, itself)]
  const oauth = openOAuth({ clock })
  expect(await ask(oauth, config)).toBe(200)
  expect(issuer.tokenRequests).toEqual([
    {
      grant_type: 'client_credentials',
      resource: resource.url,
      scope: 'read',
      client_id: 'toolway',
      client_secret: 'the client secret',
    },
  ])
  expect(await ask(oauth, config, 'tools/call')).toBe(200)
  expect(issuer.tokenRequests.at(-1)?.scope).toBe('read write')
  await expect(oauth.begin('files', config, new URL('http://127.0.0.1/'))).rejects.toThrow('needs no sign-in')
})

test('B6: an error about client credentials names their settings, not the sign-in that they make unnecessary', async () => {
  await using issuer = await startIssuer({
    answerToken: (response) => json(response, 401, { error: 'invalid_client' }),
  })
  await using resource = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url, itself)]
  for (let call = 0; call < 2; call++) {
    const error = await ask(oauth, config).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'AUTH_REQUIRED', message: expect.stringContaining('mcpServers.files.auth') })
    expect(error.message).not.toContain('toolway auth')
  }
  // Without and with the client's id in the body, and not again for the second call.
  expect(issuer.tokenRequests).toHaveLength(2)
})

describe('B6: a client that authenticates by header', () => {
  const basic = { token_endpoint_auth_methods_supported: ['client_secret_basic'] }
  const authorization = basicAuth('toolway', 'the+client+secret')
  const token = { access_token: 'access-1', token_type: 'Bearer' }

  test('does not name itself in the body, because Okta refuses a request with both', async () => {
    await using issuer = await startIssuer({ metadata: basic })
    await using resource = await startResource({ issuers: [issuer] })
    expect(await ask(openOAuth(), serverConfig(resource.url, itself))).toBe(200)
    expect(issuer.tokenRequests).toEqual([{ grant_type: 'client_credentials', resource: resource.url, authorization }])
  })

  test('names itself there, without its secret, if the authorization server does not know it otherwise', async () => {
    await using issuer = await startIssuer({
      metadata: basic,
      answerToken: (response, { client_id: id }) =>
        id === undefined ? json(response, 401, { error: 'invalid_client' }) : json(response, 200, token),
    })
    await using resource = await startResource({ issuers: [issuer] })
    await ask(openOAuth(), serverConfig(resource.url, itself)).catch(() => {})
    const request = { grant_type: 'client_credentials', resource: resource.url, authorization }
    expect(issuer.tokenRequests.slice(0, 2)).toEqual([request, { ...request, client_id: 'toolway' }])
  })
})

test('B6: a server without metadata is used with the issuer in the configuration', async () => {
  await using issuer = await startIssuer()
  const answerMetadata = (response: ServerResponse) => void response.writeHead(404).end()
  await using resource = await startResource({ issuers: [issuer], metadataAt: null, answerMetadata })
  expect(await ask(openOAuth(), serverConfig(resource.url, { ...itself, issuer: issuer.url }))).toBe(200)
  const [oauth, config] = [openOAuth(), serverConfig(resource.url, { issuer: issuer.url })]
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  // Without an issuer in the configuration, the server is its own authorization server.
  await expect(ask(openOAuth(), serverConfig(resource.url, itself))).rejects.toThrow(
    'publishes no authorization server',
  )
})

test('B6: a client secret is sent only to the authorization server that it was first used with', async () => {
  await using issuer = await startIssuer({ expiresIn: 100 })
  await using evil = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  const [clock, config] = [createManualClock(), serverConfig(resource.url, itself)]
  const oauth = openOAuth({ clock })
  expect(await ask(oauth, config)).toBe(200)
  resource.behaviour.issuers = [evil]
  clock.advance(3_600_000)
  await expect(ask(oauth, config)).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(evil.asked).toEqual([])
  // If the configuration names an issuer, the other one is not asked either.
  const named = serverConfig(resource.url, { ...itself, issuer: issuer.url })
  await expect(ask(openOAuth(), named)).rejects.toThrow('the client is registered with')
  expect(evil.asked).toEqual([])
})
