import { describe, expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { json, startIssuer, type TestIssuer } from './issuer.fixture.ts'
import { ask, memoryVault, openOAuth, redirect, serverConfig, signIn } from './oauth.fixture.ts'
import { startResource } from './resource.fixture.ts'

const good = { access_token: 'access-1', token_type: 'Bearer', refresh_token: 'refresh-1', expires_in: 100 }

/** Replaces the response of the token endpoint. */
const answering = (issuer: TestIssuer, body: object, status = 200) => {
  issuer.behaviour.answerToken = (response) => json(response, status, body)
}

describe('responses of a token endpoint', () => {
  test('B6: a response without a valid bearer token is refused, and nothing of it is kept', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    const vault = memoryVault()
    for (const change of [
      { token_type: 'DPoP' },
      { token_type: 'mac' },
      { token_type: undefined },
      { access_token: '' },
      { access_token: 'two\r\nlines: x' },
      { access_token: 'x'.repeat(20_000) },
      { access_token: { toString: 'x' } },
      { refresh_token: 7 },
      { expires_in: -1 },
      { expires_in: 'soon' },
    ]) {
      answering(issuer, { ...good, ...change })
      const flow = await openOAuth({ vault }).begin('files', serverConfig(resource.url), redirect)
      const finished = flow.finish(await issuer.visit(flow.url))
      await expect(finished, JSON.stringify(change)).rejects.toThrow(/unsupported type|valid token/)
    }
    expect([...vault.kept.values()].join()).not.toContain('access')
  })

  test('B6: neither our secrets nor control characters from its response are in an error or the log', async () => {
    await using issuer = await startIssuer({ expiresIn: 100 })
    await using resource = await startResource({ issuers: [issuer] })
    const config = serverConfig(resource.url, { clientId: 'toolway', clientSecret: 'the client secret' })
    for (const field of ['error', 'token_type', 'error_description', 'access_token'] as const) {
      const [clock, log] = [createManualClock(), createKeptLog()]
      const oauth = openOAuth({ clock, log })
      issuer.behaviour.answerToken = undefined as never
      await signIn(oauth, config, issuer)
      clock.advance(100_000)
      let sent = ''
      issuer.behaviour.answerToken = (response, { refresh_token = '' }) => {
        sent = refresh_token
        const refusing = field.startsWith('error')
        const body = refusing ? { error: 'invalid_request' } : good
        json(response, refusing ? 400 : 200, { ...body, [field]: `\u001b]0;x\u0007${refresh_token}` })
      }
      const refused: Error = await ask(oauth, config).then(
        () => new Error('let in'),
        (error) => error,
      )
      const told = refused.message + JSON.stringify(log.lines)
      expect(sent).toMatch(/^refresh-/)
      expect(told).not.toContain(sent)
      expect(told).not.toContain('client secret')
      expect(told).not.toMatch(/\\u001b|\u001b/)
      expect(log.lines.length, field).toBeGreaterThan(0)
    }
  })

  test('B6: a refresh with fewer scopes and without a new refresh token keeps the old one', async () => {
    await using issuer = await startIssuer({ expiresIn: 100 })
    await using resource = await startResource({ issuers: [issuer], challengeScope: 'read' })
    resource.behaviour.issuers = [{ url: issuer.url, accepts: (token) => token.startsWith('access-') }]
    const [vault, clock, config] = [memoryVault(), createManualClock(), serverConfig(resource.url)]
    const oauth = openOAuth({ vault, clock })
    await signIn(oauth, config, issuer)
    const { refresh_token: _, ...rest } = good
    answering(issuer, { ...rest, scope: 'less' })
    for (const round of [1, 2]) {
      clock.advance(100_000)
      expect(await ask(oauth, config), String(round)).toBe(200)
    }
    const [, first, second] = issuer.tokenRequests
    expect(second?.refresh_token).toBe(first?.refresh_token)
    expect((await oauth.list())[0]).toMatchObject({ scopes: ['less'], renewable: true })
  })

  test('B6: a token with an extreme or invalid lifetime is kept', async () => {
    await using issuer = await startIssuer()
    await using resource = await startResource({ issuers: [issuer] })
    resource.behaviour.issuers = [{ url: issuer.url, accepts: (token) => token === 'access-1' }]
    for (const expires_in of [1e308, 0, '3600']) {
      answering(issuer, { ...good, expires_in })
      const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
      await signIn(oauth, config, issuer)
      expect(await oauth.list()).toHaveLength(1)
      expect(await ask(oauth, config), String(expires_in)).toBe(200)
    }
  })
})

test('B6: a token is sent only to its own server, not to the target of a redirect', async () => {
  await using issuer = await startIssuer()
  await using resource = await startResource({ issuers: [issuer] })
  await using other = await startResource({ issuers: [issuer] })
  const [oauth, config] = [openOAuth(), serverConfig(resource.url)]
  await signIn(oauth, config, issuer)
  expect(await ask(oauth, config)).toBe(200)
  for (const status of [301, 302, 303, 307, 308]) {
    resource.behaviour.answer = (response) => void response.writeHead(status, { location: other.url }).end()
    expect(await ask(oauth, config)).toBe(status)
  }
  expect(other.got).toEqual([])
  // Another server that names the same authorization server does not get the token either.
  await expect(oauth.authorize('others', serverConfig(other.url))?.header()).resolves.toBeUndefined()
})
