import { lookup } from 'node:dns/promises'
import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { systemClock } from '../../core/clock.ts'
import { placeOf } from '../../policy/guards/url-addresses.ts'
import { json, startIssuer } from './issuer.fixture.ts'
import { memoryVault, openOAuth, redirect, serverConfig } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'
import { createWeb } from './web.ts'

describe('an evil authorization server', () => {
  test('B6: metadata that is about another issuer is not believed, not even by a slash', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    for (const wrong of ['https://evil.example.com', `${issuer.url}/`]) {
      issuer.behaviour.issuer = wrong
      await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow(
        'is that of another issuer',
      )
    }
    expect(issuer.registrations).toEqual([])
  })

  test('B6: mixed up with another one it gets no code, and nobody gets a token', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const vault = memoryVault()
    for (const iss of ['https://evil.example.com', `${issuer.url}/`, '', null]) {
      issuer.behaviour.iss = iss
      const flow = await openOAuth({ vault }).begin('files', serverConfig(resource.url), redirect)
      await expect(flow.finish(await issuer.visit(flow.url))).rejects.toThrow(
        /another authorization server|does not say/,
      )
    }
    // One that never promised to name itself, and names somebody else.
    issuer.behaviour.metadata = { authorization_response_iss_parameter_supported: undefined }
    issuer.behaviour.iss = 'https://evil.example.com'
    const flow = await openOAuth({ vault }).begin('files', serverConfig(resource.url), redirect)
    await expect(flow.finish(await issuer.visit(flow.url))).rejects.toThrow('another authorization server')
    expect(issuer.tokenRequests).toEqual([])
    expect([...vault.kept.values()].join()).not.toContain('access-')
  })

  test('B6: one that knows no PKCE is not used', async () => {
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
    await expect(begin()).rejects.toThrow('its token endpoint is not https')
    issuer.behaviour.answerMetadata = (response) =>
      void response.writeHead(302, { location: `${other.url}/.well-known/x` }).end()
    await expect(begin()).rejects.toThrow('redirects to another origin')
    issuer.behaviour.answerMetadata = (response) => void response.writeHead(302, { location: response.req.url }).end()
    await expect(begin()).rejects.toThrow('redirects again and again')
    expect(other.asked).toEqual([])
  })

  test('B6: neither its size nor its time is left to it', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    issuer.behaviour.answerMetadata = (response) => json(response, 200, { issuer: 'x'.repeat(300_000) })
    await expect(openOAuth().begin('files', serverConfig(resource.url), redirect)).rejects.toThrow('more than 256 KiB')
    const clock = createManualClock()
    let reached = false
    issuer.behaviour.answerMetadata = () => {
      reached = true
    }
    const slow = openOAuth({ clock }).begin('files', serverConfig(resource.url), redirect)
    slow.catch(() => {})
    await until(() => reached, { what: 'the request' })
    clock.advance(10_000)
    await expect(slow).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' })
  })
})

describe('an evil server', () => {
  test('B6: metadata about another resource, or at another origin, is refused before anybody is asked', async () => {
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
      await expect(begin(), other).rejects.toThrow('about another resource')
    }
    resource.behaviour.resource = origin
    expect((await begin()).url).toContain(encodeURIComponent(origin))
    issuer.asked.length = 0
    resource.behaviour.metadataAt = `${issuer.url}/.well-known/oauth-protected-resource`
    await expect(begin()).rejects.toThrow('at another origin')
    expect(issuer.asked).toEqual([])
  })

  test('B6: a server out there cannot make us look at what is in here', async () => {
    await using issuer = await startIssuer()
    const web = createWeb({ placeOf, clock: systemClock })
    const port = new URL(issuer.url).port
    for (const host of ['127.0.0.1', 'localhost', '127.1', '0x7f000001']) {
      await expect(web.get(new URL(`http://${host}:${port}/x`), 'public'), host).rejects.toThrow('private or reserved')
    }
    for (const host of ['10.0.0.1', '169.254.169.254', '[fd00::1]', '[::ffff:10.0.0.1]', '100.100.100.200']) {
      await expect(web.get(new URL(`https://${host}/`), 'public'), host).rejects.toThrow('private or reserved')
    }
    // Where credentials of clouds are given out, not even a server in here may lead.
    await expect(web.get(new URL('https://169.254.169.254/'), 'private')).rejects.toThrow('private or reserved')
    expect(issuer.asked).toEqual([])
    expect((await web.get(new URL(`http://localhost:${port}/x`), 'private')).status).toBe(404)
    expect((await lookup('localhost', { all: true })).length).toBeGreaterThan(0)
  })

  test('B6: what it names must be https', async () => {
    for (const url of ['http://id.example.com', 'ftp://id.example.com', 'nonsense', 'https://a:b@id.example.com']) {
      await using resource = await startResource({ issuers: [{ url, accepts: () => false }] })
      await expect(openOAuth().begin('files', serverConfig(resource.url), redirect), url).rejects.toMatchObject({
        code: 'AUTH_REQUIRED',
      })
    }
  })
})
