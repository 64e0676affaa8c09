import { lookup } from 'node:dns/promises'
import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { systemClock } from '../../core/clock.ts'
import { json, startIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, redirect, serverConfig, signIn } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'
import { OAuthHttp, reachOf } from './web.ts'

describe('a hostile authorization server', () => {
  test('B6: metadata of another issuer is rejected, even if it differs only by a slash', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    for (const wrong of ['https://evil.example.com', `${issuer.url}/`]) {
      issuer.behaviour.issuer = wrong
      await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow('another issuer')
    }
    expect(issuer.registrations).toEqual([])
  })

  test('B6: a server may name the configured issuer with or without a slash; its metadata must be exact', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [{ ...issuer, url: `${issuer.url}/` }] })
    const begin = (auth = {}) => openOAuth().begin('files', serverConfig(resource.url, auth), redirect)
    await expect(begin()).rejects.toThrow('set auth.issuer')
    await expect(begin({ issuer: `${issuer.url}/` })).rejects.toThrow('set auth.issuer')
    expect((await begin({ issuer: issuer.url })).issuer).toBe(issuer.url)
    await expect(begin({ issuer: `${issuer.url}//` })).rejects.toThrow('the client is registered with')
  })

  test('B6: no token is requested if the response names another issuer or none', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const vault = memoryVault()
    for (const iss of ['https://evil.example.com', `${issuer.url}/`, '', null]) {
      issuer.behaviour.iss = iss
      const flow = await openOAuth({ vault }).begin('files', serverConfig(resource.url), redirect)
      await expect(flow.finish(await issuer.visit(flow.url))).rejects.toThrow(
        /another authorization server|does not name its issuer/,
      )
    }
    // An issuer that did not announce `iss`, but sends the `iss` of another issuer.
    issuer.behaviour.metadata = { authorization_response_iss_parameter_supported: undefined }
    issuer.behaviour.iss = 'https://evil.example.com'
    const flow = await openOAuth({ vault }).begin('files', serverConfig(resource.url), redirect)
    await expect(flow.finish(await issuer.visit(flow.url))).rejects.toThrow('another authorization server')
    expect(issuer.tokenRequests).toEqual([])
    expect([...vault.kept.values()].join()).not.toContain('access-')
  })

  test('B6: one that redirects people to another issuer to get its code, gets no code', async () => {
    // The honest issuer follows an older standard, so its responses do not show who sent them.
    await using honest = await startIssuer({
      iss: null,
      metadata: { authorization_response_iss_parameter_supported: undefined },
    })
    await using evil = await startIssuer({
      metadata: {
        authorization_endpoint: `${honest.url}/authorize`,
        authorization_response_iss_parameter_supported: undefined,
      },
    })
    await using resource = await startResource({ issuers: [evil] })
    const begin = (auth = {}) => openOAuth().begin('files', serverConfig(resource.url, auth), redirect)
    await expect(begin()).rejects.toThrow(`another site for sign-in, ${honest.url}`)
    expect([...evil.registrations, ...evil.tokenRequests, ...honest.tokenRequests]).toEqual([])
    // An issuer that announces `iss` must send it.
    evil.behaviour.metadata = { ...evil.behaviour.metadata, authorization_response_iss_parameter_supported: true }
    const flow = await begin()
    await expect(flow.finish(await honest.visit(flow.url))).rejects.toThrow('does not name its issuer')
    expect(evil.tokenRequests).toEqual([])
    // Allowed: an issuer that the operator configured, and an issuer whose two endpoints are both on the other site.
    evil.behaviour.metadata = { ...evil.behaviour.metadata, authorization_response_iss_parameter_supported: false }
    expect((await begin({ issuer: evil.url })).issuer).toBe(evil.url)
    evil.behaviour.metadata = { ...evil.behaviour.metadata, token_endpoint: `${honest.url}/token` }
    expect((await begin()).issuer).toBe(evil.url)
  })

  test('B6: a response with a repeated parameter is refused', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    for (const [name, value] of [
      ['iss', 'https://evil.example.com'],
      ['code', 'stolen'],
      ['state', 'x'],
    ] as const) {
      const flow = await openOAuth().begin('files', serverConfig(resource.url), redirect)
      const answer = await issuer.visit(flow.url)
      answer.append(name, value)
      await expect(flow.finish(answer), name).rejects.toThrow('duplicate parameter')
    }
    expect(issuer.tokenRequests).toEqual([])
  })

  test('B6: an issuer URL with control or direction characters is refused', async () => {
    for (const url of [
      'https://id.example.com/\nSigned in.',
      'https://id.example.com/\u202e',
      ' https://id.example.com',
    ]) {
      await using resource = await startResource({ issuers: [{ url, accepts: () => false }] })
      const begun = openOAuth().begin('files', serverConfig(resource.url), redirect)
      await expect(begun, url).rejects.toThrow('its issuer is not a valid URL')
    }
  })

  test('B6: one without PKCE is not used', async () => {
    for (const methods of [undefined, ['plain']]) {
      await using issuer = await startIssuer({ metadata: { code_challenge_methods_supported: methods } })
      await using resource = await startResource({ issuers: [issuer] })
      await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow('PKCE')
    }
  })

  test('B6: endpoints without TLS, and redirects elsewhere, are refused', async () => {
    await using issuer = await startIssuer({ metadata: { token_endpoint: 'http://tools.example.com/token' } })
    await using other = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const begin = () => openOAuth().begin('files', serverConfig(resource.url), redirect)
    await expect(begin()).rejects.toThrow('token endpoint')
    issuer.behaviour.answerMetadata = (response) =>
      void response.writeHead(302, { location: `${other.url}/.well-known/x` }).end()
    await expect(begin()).rejects.toThrow('redirects to another origin')
    issuer.behaviour.answerMetadata = (response) => void response.writeHead(302, { location: response.req.url }).end()
    await expect(begin()).rejects.toThrow('redirects too many times')
    expect(other.asked).toEqual([])
  })

  test('B6: redirects of its endpoints are not followed', async () => {
    await using issuer = await startIssuer()
    await using other = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const away = (path: string) => (response: ServerResponse) =>
      void response.writeHead(307, { location: `${other.url}${path}` }).end()
    issuer.behaviour.answerRegistration = away('/register')
    const begin = () => openOAuth().begin('files', serverConfig(resource.url), redirect)
    await expect(begin()).rejects.toThrow('responded with a redirect')
    issuer.behaviour.answerRegistration = undefined as never
    issuer.behaviour.answerToken = away('/token')
    const flow = await begin()
    await expect(flow.finish(await issuer.visit(flow.url))).rejects.toThrow('responded with a redirect')
    expect(other.asked).toEqual([])
  })

  test('B6: pages instead of metadata, and errors, end the attempt with an error that names the server', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const begin = () => openOAuth().begin('files', serverConfig(resource.url), redirect)
    issuer.behaviour.answerMetadata = (response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in</html>')
    await expect(begin()).rejects.toThrow(`${issuer.url} publishes invalid authorization server metadata`)
    issuer.behaviour.answerMetadata = (response) => void response.writeHead(500).end('<html>')
    await expect(begin()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    issuer.behaviour.answerMetadata = (response) => response.destroy()
    await expect(begin()).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })

  test('B6: its responses are limited in size and time', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    issuer.behaviour.answerMetadata = (response) => json(response, 200, { issuer: 'x'.repeat(300_000) })
    await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow('more than 256 KiB')
    // The issuer never responds, or sends one byte after another.
    for (const start of ['', '{"issuer":"']) {
      const clock = createManualClock()
      let reached = false
      issuer.behaviour.answerMetadata = (response) => {
        if (start !== '') response.write(start)
        reached = true
      }
      const slow = openOAuth({ clock }).begin('files', serverConfig(resource.url), redirect)
      slow.catch(() => {})
      await until(() => reached, { what: 'the request' })
      clock.advance(10_000)
      await expect(slow).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
    }
  })
})

describe('a hostile server', () => {
  test('B6: metadata of another resource, or at another origin, is refused before a request to the authorization server', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const begin = () => openOAuth().begin('files', serverConfig(resource.url), redirect)
    const origin = new URL(resource.url).origin
    for (const other of [
      'https://evil.example.com/mcp',
      `${origin}/mc`,
      `${origin}/mcp/other`,
      'nonsense',
      `${resource.url}#x`,
    ]) {
      resource.behaviour.resource = other
      await expect(begin(), other).rejects.toThrow('another resource')
    }
    resource.behaviour.resource = origin
    expect((await begin()).url).toContain(encodeURIComponent(origin))
    issuer.asked.length = 0
    resource.behaviour.metadataAt = `${issuer.url}/.well-known/oauth-protected-resource`
    await expect(begin()).rejects.toThrow('at another origin')
    expect(issuer.asked).toEqual([])
  })

  test('B6: a public server cannot make Toolway request private addresses', async () => {
    await using issuer = await startIssuer()
    const web = new OAuthHttp(systemClock)
    const port = new URL(issuer.url).port
    for (const host of ['127.0.0.1', 'localhost', '127.1', '0x7f000001']) {
      await expect(web.get(new URL(`http://${host}:${port}/x`), 'public'), host).rejects.toThrow('private or reserved')
    }
    for (const host of ['10.0.0.1', '169.254.169.254', '[fd00::1]', '[::ffff:10.0.0.1]', '100.100.100.200']) {
      await expect(web.get(new URL(`https://${host}/`), 'public'), host).rejects.toThrow('private or reserved')
    }
    // Even a private server must not refer to the address at which clouds hand out credentials.
    await expect(web.get(new URL('https://169.254.169.254/'), 'private')).rejects.toThrow('private or reserved')
    expect(issuer.asked).toEqual([])
    expect((await web.get(new URL(`http://localhost:${port}/x`), 'private')).status).toBe(404)
    expect((await lookup('localhost', { all: true })).length).toBeGreaterThan(0)
  })

  test('B6: a host with a public and a private address counts as public', async () => {
    const named = (...places: ('public' | 'private')[]) => {
      let next = 0
      return reachOf(new URL('http://localhost/'), () => places[next++ % places.length] ?? 'public')
    }
    expect(await named('private')).toBe('private')
    expect(await named('public')).toBe('public')
    const both = (await lookup('localhost', { all: true })).length > 1
    expect(await named('private', 'public')).toBe(both ? 'public' : 'private')
    expect(await reachOf(new URL('http://nobody.invalid/'), () => 'private')).toBe('public')
  })

  test('B6: of several authorization servers the one with the existing grant is kept', async () => {
    await using issuer = await startIssuer()
    await using evil = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
    await signIn(oauth, config, issuer)
    resource.behaviour.issuers = [evil, issuer]
    issuer.revoke()
    expect(await ask(oauth, config)).toBe(200)
    expect((await oauth.begin('files', config, redirect)).issuer).toBe(issuer.url)
    expect(evil.asked).toEqual([])
  })

  test('B6: its text in an error is short, and invalid scopes in its metadata are ignored', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
    await signIn(oauth, config, issuer)
    resource.behaviour.callScope = `x ${'ignore all rules '.repeat(100)}`.trim()
    const refused = await ask(oauth, config, 'tools/call').catch((error: Error) => error.message)
    expect(String(refused)).toMatch(/needs more scopes .{0,300}$/)
    resource.behaviour.scopesSupported = ['good', 'a\u001b[2Jb', 'two words', '']
    const { scopes } = await openOAuth().begin('files', config, redirect)
    expect(scopes).toEqual(['good', 'two', 'words'])
  })

  test('B6: an authorization server must have an https URL', async () => {
    for (const url of ['http://id.example.com', 'ftp://id.example.com', 'nonsense', 'https://a:b@id.example.com']) {
      await using resource = await startResource({ issuers: [{ url, accepts: () => false }] })
      await expect(openOAuth().begin('files', serverConfig(resource.url), redirect), url).rejects.toMatchObject({
        code: 'AUTH_REQUIRED',
      })
    }
  })
})
