import { createHmac, createPublicKey } from 'node:crypto'
import { type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createManualClock, type ManualClock } from '../../../tests/fixtures/clock.ts'
import {
  audience,
  issuer,
  type Provider,
  signingKey,
  startProvider,
} from '../../../tests/fixtures/identity-provider.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { Refusal } from '../refusal.ts'
import { createAuthenticate } from './index.ts'
import type { JwtConfig } from './jwt.ts'

let clock: ManualClock
let log: KeptLog
let provider: Provider
let open: AsyncDisposableStack

beforeEach(async () => {
  open = new AsyncDisposableStack()
  clock = createManualClock()
  log = createKeptLog()
  provider = open.use(await startProvider(clock.now))
})
afterEach(() => open.disposeAsync())

const door = (changes: Partial<JwtConfig> = {}, token: string | undefined = undefined) => {
  const authenticate = createAuthenticate({
    token,
    keys: { find: () => undefined },
    jwt: provider.config(changes),
    clock,
    log,
  })
  open.use(authenticate)
  return async (credential: string) => authenticate(`Bearer ${credential}`)
}

/** What a refused credential is answered with; never an identity. */
async function refused(attempt: Promise<unknown>): Promise<Refusal> {
  const outcome = await attempt.then(
    (identity) => identity,
    (error: unknown) => error,
  )
  expect(outcome).toBeInstanceOf(Refusal)
  return outcome as Refusal
}

const expectInvalid = async (attempt: Promise<unknown>, sentence = /./) => {
  const { status, message, details } = await refused(attempt)
  expect(status).toBe(401)
  expect(details.headers).toEqual({ 'WWW-Authenticate': 'Bearer realm="toolway", error="invalid_token"' })
  expect(message).toMatch(sentence)
}

const seconds = () => Math.floor(clock.now() / 1000)
const part = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

describe('B6, G7: a token of the identity provider', () => {
  test.each(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'])('signed with %s lets its subject in', async (alg) => {
    const key = await signingKey('k', alg)
    provider.publish(key)
    expect(await door()(await provider.token({}, { key }))).toEqual({
      principal: 'jwt:id.example.com:anna',
      authenticated: true,
      admin: false,
      agents: [],
    })
  })

  test('names one agent or several, in the claim that is configured', async () => {
    const enter = door({ agentClaim: 'roles' })
    const agentsFor = async (roles: unknown) => (await enter(await provider.token({ roles, agent: 'other' }))).agents
    expect(await agentsFor('team.reader')).toEqual(['team.reader'])
    expect(await agentsFor(['reader', 'writer'])).toEqual(['reader', 'writer'])
  })

  test.each([
    [[]],
    [''],
    [null],
    [7],
    [{ reader: true }],
    [['reader', 7]],
    ['*'],
    ['a b'],
    ['x'.repeat(129)],
    [[['a']]],
  ])('whose agent claim is %j names no agent and is refused, rather than taken for the default one', async (agent) => {
    await expectInvalid(door()(await provider.token({ agent })), /claim agent/)
  })

  test('never makes an admin, whatever it claims', async () => {
    const claims = { admin: true, scope: 'admin', roles: ['admin'], agents: '*', authenticated: false }
    expect(await door()(await provider.token(claims))).toMatchObject({ admin: false, agents: [] })
  })

  test('of several audiences is good if ours is among them', async () => {
    expect(await door()(await provider.token({ aud: ['https://other.example', audience] }))).toBeDefined()
  })

  test('gives different subjects different principals, short and printable', async () => {
    const enter = door()
    const subjects = [
      'anna',
      'auth0|x',
      'a b',
      'a\nb',
      'ä',
      '~x',
      'x'.repeat(200),
      'x'.repeat(201),
      'x'.repeat(5000),
      'a:b',
    ]
    const principals = new Set<string>()
    for (const sub of subjects) principals.add((await enter(await provider.token({ sub }))).principal)
    expect(principals.size).toBe(subjects.length)
    for (const principal of principals) expect(principal).toMatch(/^jwt:id\.example\.com:[\x21-\x7e]{1,200}$/)
  })

  test('without a kid is tried with every key that fits', async () => {
    const [other, mine] = [await signingKey('a'), await signingKey('b')]
    provider.publish(other, mine)
    const enter = door()
    expect(await enter(await provider.token({}, { key: mine, header: { kid: undefined } }))).toBeDefined()
    const stranger = await signingKey('c')
    await expectInvalid(enter(await provider.token({}, { key: stranger, header: { kid: undefined } })))
  })
})

describe('B6: a token that is not as it must be', () => {
  test.each<[string, () => object, RegExp]>([
    ['expired', () => ({ exp: seconds() - 31 }), /expired/],
    ['not valid yet', () => ({ nbf: seconds() + 31 }), /not valid yet/],
    ['of another issuer', () => ({ iss: 'https://evil.example' }), /another issuer/],
    ['of an issuer with a slash more', () => ({ iss: `${issuer}/` }), /another issuer/],
    ['for another audience', () => ({ aud: 'https://other.example' }), /another audience/],
    ['for an audience that only begins like ours', () => ({ aud: `${audience}/x` }), /another audience/],
    ['for nobody', () => ({ aud: [] }), /another audience/],
    ['without exp', () => ({ exp: undefined }), /no exp claim/],
    ['without sub', () => ({ sub: undefined }), /no sub claim/],
    ['without iss', () => ({ iss: undefined }), /no iss claim/],
    ['without aud', () => ({ aud: undefined }), /no aud claim/],
    ['with an empty subject', () => ({ sub: '' }), /subject/],
    ['with a subject that is a number', () => ({ sub: 7 }), /./],
    ['with an exp that is text', () => ({ exp: '9999999999' }), /./],
  ])('%s', async (_, claims, sentence) => {
    const header = { alg: 'ES256', kid: 'first' }
    const token = await new SignJWT(
      JSON.parse(
        JSON.stringify({ iss: issuer, aud: audience, sub: 'anna', exp: seconds() + 600, ...claims() }),
      ) as Record<string, unknown>,
    )
      .setProtectedHeader(header)
      .sign(provider.first.privateKey)
    await expectInvalid(door()(token), sentence)
  })

  test('clocks may be half a minute apart', async () => {
    const enter = door()
    expect(await enter(await provider.token({ exp: seconds() - 29 }))).toBeDefined()
    expect(await enter(await provider.token({ nbf: seconds() + 30 }))).toBeDefined()
  })

  test('signed by somebody else in the name of a published key', async () => {
    const stranger = await signingKey('first')
    await expectInvalid(door()(await provider.token({}, { key: stranger })), /can trust/)
  })

  test('with a signature, payload or header that was changed', async () => {
    const enter = door()
    const [header = '', payload = '', signature = ''] = (await provider.token()).split('.')
    const claims = JSON.parse(String(Buffer.from(payload, 'base64url')))
    await expectInvalid(enter(`${header}.${part({ ...claims, sub: 'root' })}.${signature}`))
    await expectInvalid(enter(`${part({ alg: 'ES256', kid: 'first', x: 1 })}.${payload}.${signature}`))
    await expectInvalid(enter(`${header}.${payload}.${'A'.repeat(signature.length)}`))
    await expectInvalid(enter(`${header}.${payload}.`))
    expect(await enter(`${header}.${payload}.${signature}`)).toBeDefined()
  })

  test('unsigned: alg none, in any spelling', async () => {
    const enter = door()
    const claims = { iss: issuer, aud: audience, sub: 'anna', exp: seconds() + 600 }
    await expectInvalid(enter(new UnsecuredJWT(claims).encode()))
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '', null, 0, ['none']]) {
      await expectInvalid(enter(`${part({ alg, kid: 'first' })}.${part(claims)}.`))
      await expectInvalid(enter(`${part({ alg, kid: 'first' })}.${part(claims)}.AAAA`))
    }
  })

  test('signed with what is public: HS256 with the published key as the secret', async () => {
    const key = await signingKey('rsa', 'RS256')
    provider.publish(key)
    const enter = door()
    const claims = part({ iss: issuer, aud: audience, sub: 'anna', exp: seconds() + 600 })
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
    provider.behave((response) => response.end(JSON.stringify({ keys: [provider.first.jwk, jwk] })))
    const signed = `${part({ alg: 'HS256', kid: 'oct' })}.${part({ iss: issuer, aud: audience, sub: 'a', exp: seconds() + 9 })}`
    await expectInvalid(door()(`${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`))
  })

  test('that brings its own key along: jwk, jku, x5u and x5c are never looked at', async () => {
    const evil = await startProvider(clock.now)
    open.use(evil)
    const key = await signingKey('evil')
    evil.publish(key)
    const enter = door()
    for (const header of [
      { jwk: key.jwk },
      { jku: evil.url },
      { x5u: evil.url },
      { jku: evil.url, kid: evil.url },
      { jwk: key.jwk, kid: 'first' },
      { x5c: ['MIIB'], kid: 'first' },
    ]) {
      await expectInvalid(enter(await provider.token({}, { key, header })))
    }
    expect(evil.requests).toBe(0)
  })

  test('whose kid is a path, an address or a query is simply an unknown key', async () => {
    const enter = door()
    const key = await signingKey('evil')
    const before = provider.requests
    for (const kid of [
      '../../../../dev/null',
      '/etc/passwd',
      "' OR 1=1 --",
      'http://evil.example',
      '__proto__',
      '\0',
      '',
    ]) {
      await expectInvalid(enter(await provider.token({}, { key, header: { kid } })))
    }
    expect(provider.requests - before).toBe(1)
  })

  test('with a critical extension or an unencoded payload', async () => {
    const enter = door()
    const claims = part({ iss: issuer, aud: audience, sub: 'anna', exp: seconds() + 600 })
    for (const header of [
      { alg: 'ES256', kid: 'first', crit: ['exp'], exp: 1 },
      { alg: 'ES256', kid: 'first', crit: ['b64'], b64: false },
    ]) {
      await expectInvalid(enter(`${part(header)}.${claims}.AAAA`))
    }
  })

  test('larger than 16 KiB is refused before anything is done with it', async () => {
    await expectInvalid(door()(await provider.token({ padding: 'x'.repeat(16 * 1024) })), /16 KiB/)
    expect(provider.requests).toBe(0)
  })

  test('where JSON Web Tokens are off', async () => {
    await expectInvalid(door({ disabled: true })(await provider.token()), /auth\.jwt/)
    expect(provider.requests).toBe(0)
  })

  test('never becomes anybody else, also where no credential is needed or a token would do', async () => {
    const wrong = await provider.token({ iss: 'https://evil.example' })
    await expectInvalid(door({}, undefined)(wrong))
    await expectInvalid(door({}, 'tw_the-token')(wrong))
  })

  test('neither the answer nor the log repeats any of it', async () => {
    const token = await provider.token({ sub: 'who-it-was', iss: 'https://evil.example/marker' })
    const { message } = await refused(door()(token))
    const told = message + JSON.stringify(log.lines)
    for (const secret of [...token.split('.'), 'who-it-was', 'marker']) expect(told).not.toContain(secret)
  })
})

test('B6: the keys come over TLS or from this machine', async () => {
  const keys = { find: () => undefined }
  const made = (jwksUrl: string) => () =>
    void open.use(createAuthenticate({ token: undefined, keys, jwt: provider.config({ jwksUrl }), clock, log }))
  for (const url of ['https://id.example.com/jwks', 'http://localhost/k', 'http://127.8.9.1/k', 'http://[::1]:8/k']) {
    expect(made(url)).not.toThrow()
  }
  for (const url of [
    'http://id.example.com/jwks',
    'http://127.0.0.1.evil.example/',
    'http://localhost.evil.example/',
  ]) {
    expect(made(url)).toThrow(/https:\/\//)
  }
})
