import { createHmac, createPublicKey } from 'node:crypto'
import { type JWK, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { audience, issuer, signingKey, startProvider } from '../../../tests/fixtures/identity-provider.ts'
import { expectInvalid, openJwtFixture, part } from './jwt.fixture.ts'

let jwt: Awaited<ReturnType<typeof openJwtFixture>>
beforeEach(async () => {
  jwt = await openJwtFixture()
})
afterEach(() => jwt[Symbol.asyncDispose]())

describe('B6: a forged token', () => {
  test('unsigned: alg none, in any spelling', async () => {
    const enter = jwt.authenticator()
    const claims = { iss: issuer, aud: audience, sub: 'anna', exp: jwt.seconds() + 600 }
    await expectInvalid(enter(new UnsecuredJWT(claims).encode()))
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '', null, 0, ['none']]) {
      await expectInvalid(enter(`${part({ alg, kid: 'first' })}.${part(claims)}.`))
      await expectInvalid(enter(`${part({ alg, kid: 'first' })}.${part(claims)}.AAAA`))
    }
  })

  test('signed with a public value: HS256 with the published key as the secret', async () => {
    const key = await signingKey('rsa', 'RS256')
    jwt.provider.publish(key)
    const enter = jwt.authenticator()
    const claims = part({ iss: issuer, aud: audience, sub: 'anna', exp: jwt.seconds() + 600 })
    const publicKey = createPublicKey({ key: key.jwk as Record<string, string>, format: 'jwk' })
    const secrets = [
      publicKey.export({ type: 'spki', format: 'pem' }),
      publicKey.export({ type: 'spki', format: 'der' }),
      publicKey.export({ type: 'pkcs1', format: 'pem' }),
      JSON.stringify(key.jwk),
      key.jwk.n as string,
    ]
    for (const alg of ['HS256', 'RS256']) {
      const signed = `${part({ alg, kid: 'rsa', typ: 'JWT' })}.${claims}`
      for (const secret of secrets) {
        await expectInvalid(enter(`${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`))
      }
    }
  })

  test('signed with a secret that the provider published by mistake', async () => {
    const secret = Buffer.alloc(32, 7)
    const jwk: JWK = { kty: 'oct', k: secret.toString('base64url'), kid: 'oct', alg: 'HS256' }
    jwt.provider.behave((response) => response.end(JSON.stringify({ keys: [jwt.provider.first.jwk, jwk] })))
    const signed = `${part({ alg: 'HS256', kid: 'oct' })}.${part({ iss: issuer, aud: audience, sub: 'a', exp: jwt.seconds() + 9 })}`
    await expectInvalid(
      jwt.authenticator()(`${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`),
    )
  })

  test('that brings its own key along: jwk, jku, x5u and x5c are never looked at', async () => {
    const evil = await startProvider(jwt.clock.now)
    jwt.open.use(evil)
    const key = await signingKey('evil')
    evil.publish(key)
    const enter = jwt.authenticator()
    for (const header of [
      { jwk: key.jwk },
      { jku: evil.url },
      { x5u: evil.url },
      { jku: evil.url, kid: evil.url },
      { jwk: key.jwk, kid: 'first' },
      { x5c: ['MIIB'], kid: 'first' },
    ]) {
      await expectInvalid(enter(await jwt.provider.token({}, { key, header })))
    }
    expect(evil.requests).toBe(0)
  })

  test('whose kid is a path, an address or a query is simply an unknown key', async () => {
    const enter = jwt.authenticator()
    const key = await signingKey('evil')
    const before = jwt.provider.requests
    for (const kid of [
      '../../../../dev/null',
      '/etc/passwd',
      "' OR 1=1 --",
      'http://evil.example',
      '__proto__',
      '\0',
      '',
    ]) {
      await expectInvalid(enter(await jwt.provider.token({}, { key, header: { kid } })))
    }
    expect(jwt.provider.requests - before).toBe(1)
  })

  test('with a critical extension or an unencoded payload', async () => {
    const enter = jwt.authenticator()
    const claims = part({ iss: issuer, aud: audience, sub: 'anna', exp: jwt.seconds() + 600 })
    for (const header of [
      { alg: 'ES256', kid: 'first', crit: ['exp'], exp: 1 },
      { alg: 'ES256', kid: 'first', crit: ['b64'], b64: false },
    ]) {
      await expectInvalid(enter(`${part(header)}.${claims}.AAAA`))
    }
  })
})
