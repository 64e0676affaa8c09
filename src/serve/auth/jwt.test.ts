import { generateKeyPair, KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { exportJWK, SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { audience, issuer, signingKey } from '../../../tests/fixtures/identity-provider.ts'
import { createAuthenticate } from './authenticate.ts'
import { expectInvalid, openJwtFixture, part, refused } from './jwt.fixture.ts'
import { createJwtVerifier } from './jwt.ts'

let jwt: Awaited<ReturnType<typeof openJwtFixture>>
beforeEach(async () => {
  jwt = await openJwtFixture()
})
afterEach(() => jwt[Symbol.asyncDispose]())

describe('B6, G7: a token of the identity provider', () => {
  test.each(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'])('signed with %s authenticates its subject', async (alg) => {
    const key = await signingKey('k', alg)
    jwt.provider.publish(key)
    expect(await jwt.authenticator()(await jwt.provider.token({}, { key }))).toEqual({
      principal: 'jwt:id.example.com:anna',
      authenticated: true,
      admin: false,
      agents: [],
    })
  })

  test('names one agent or several, in the claim that is configured', async () => {
    const enter = jwt.authenticator({ agentClaim: 'roles' })
    const agentsFor = async (roles: unknown) =>
      (await enter(await jwt.provider.token({ roles, agent: 'other' }))).agents
    expect(await agentsFor('team.reader')).toEqual(['team.reader'])
    expect(await agentsFor(['reader', 'writer'])).toEqual(['reader', 'writer'])
  })

  test('names its agents among other groups, which are ignored', async () => {
    const enter = jwt.authenticator({ agentClaim: 'groups' })
    const agentsFor = async (groups: unknown) => (await enter(await jwt.provider.token({ groups }))).agents
    expect(await agentsFor(['Domain Users', 'reader', ''])).toEqual(['reader'])
    // Keycloak names groups by their path.
    expect(await agentsFor(['/reader', '/team/writer'])).toEqual(['reader', 'team/writer'])
    for (const groups of [['Domain Users'], ['//reader'], []])
      await expectInvalid(enter(await jwt.provider.token({ groups })), /groups claim/)
  })

  test('names its agents in a member of a claim, if no claim has the whole name', async () => {
    const enter = jwt.authenticator({ agentClaim: 'realm_access.roles' })
    const agentsFor = async (claims: object) => (await enter(await jwt.provider.token({ ...claims }))).agents
    const realm_access = { roles: ['reader'] }
    expect(await agentsFor({ realm_access })).toEqual(['reader'])
    expect(await agentsFor({ realm_access, 'realm_access.roles': 'writer' })).toEqual(['writer'])
    expect(await agentsFor({ realm_access: {} })).toEqual([])
    expect(await agentsFor({ realm_access: 'roles' })).toEqual([])
    await expectInvalid(enter(await jwt.provider.token({ realm_access: { roles: [] } })), /realm_access\.roles/)
    const inherited = jwt.authenticator({ agentClaim: 'realm_access.constructor.name' })
    expect((await inherited(await jwt.provider.token({ realm_access }))).agents).toEqual([])
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
    await expectInvalid(jwt.authenticator()(await jwt.provider.token({ agent })), /agent/)
  })

  test('never makes an admin, whatever it claims', async () => {
    const claims = { admin: true, scope: 'admin', roles: ['admin'], agents: '*', authenticated: false }
    expect(await jwt.authenticator()(await jwt.provider.token(claims))).toMatchObject({ admin: false, agents: [] })
  })

  test('of several audiences is good if ours is among them', async () => {
    expect(
      await jwt.authenticator()(await jwt.provider.token({ aud: ['https://other.example', audience] })),
    ).toBeDefined()
  })

  test('gives different subjects different principals, short and printable', async () => {
    const enter = jwt.authenticator()
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
    for (const sub of subjects) principals.add((await enter(await jwt.provider.token({ sub }))).principal)
    expect(principals.size).toBe(subjects.length)
    for (const principal of principals) expect(principal).toMatch(/^jwt:id\.example\.com:[\x21-\x7e]{1,200}$/)
  })

  test('without a kid is tried with every key that fits', async () => {
    const [other, mine] = [await signingKey('a'), await signingKey('b')]
    jwt.provider.publish(other, mine)
    const enter = jwt.authenticator()
    expect(await enter(await jwt.provider.token({}, { key: mine, header: { kid: undefined } }))).toBeDefined()
    const stranger = await signingKey('c')
    await expectInvalid(enter(await jwt.provider.token({}, { key: stranger, header: { kid: undefined } })))
  })

  test('without a kid is accepted if another published key is too weak to be used', async () => {
    const mine = await signingKey('b', 'RS256')
    const { publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 1024 })
    const weak = { ...mine, jwk: { ...(await exportJWK(publicKey)), kid: 'a', alg: 'RS256', use: 'sig' } }
    jwt.provider.publish(weak, mine)
    const enter = jwt.authenticator()
    expect(await enter(await jwt.provider.token({}, { key: mine, header: { kid: undefined } }))).toBeDefined()
    await expectInvalid(
      enter(await jwt.provider.token({ exp: jwt.seconds() - 31 }, { key: mine, header: { kid: undefined } })),
      /expired/,
    )
  })
})

describe('B6: an invalid token', () => {
  test.each<[string, () => object, RegExp]>([
    ['expired', () => ({ exp: jwt.seconds() - 31 }), /expired/],
    ['not valid yet', () => ({ nbf: jwt.seconds() + 31 }), /not valid yet/],
    ['of another issuer', () => ({ iss: 'https://evil.example' }), /different issuer/],
    ['of an issuer with a slash more', () => ({ iss: `${issuer}/` }), /different issuer/],
    ['for another audience', () => ({ aud: 'https://other.example' }), /different audience/],
    ['for an audience that only begins like ours', () => ({ aud: `${audience}/x` }), /different audience/],
    ['for nobody', () => ({ aud: [] }), /different audience/],
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
        JSON.stringify({ iss: issuer, aud: audience, sub: 'anna', exp: jwt.seconds() + 600, ...claims() }),
      ) as Record<string, unknown>,
    )
      .setProtectedHeader(header)
      .sign(jwt.provider.first.privateKey)
    await expectInvalid(jwt.authenticator()(token), sentence)
  })

  /** A token with exactly this text in it; jose would not sign some of it. */
  const signedText = async (header: string, claims: string) => {
    const text = [header, claims].map((one) => Buffer.from(one).toString('base64url')).join('.')
    const { privateKey } = jwt.provider.first
    const key = privateKey instanceof KeyObject ? privateKey : KeyObject.from(privateKey)
    return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const header = '{"alg":"ES256","kid":"first"}'
  const claims = (more: string) => `{"iss":"${issuer}","aud":"${audience}","sub":"anna"${more}}`

  test.each(['1e999', '1e300', '253402300800', '-1e999', '1700000000000'])('that expires at %s', async (exp) => {
    const token = await signedText(header, claims(`,"exp":${exp}`))
    await expectInvalid(jwt.authenticator()(token), /expired|exp claim is invalid/)
  })

  test.each([
    ['a claim', header, claims(`,"exp":253402300799,"aud":"${audience}"`)],
    ['an escaped claim', header, claims(`,"exp":253402300799,"\\u0073ub":"root"`)],
    ['an inner member', header, claims(',"exp":253402300799,"x":{"a":1,"a":2}')],
    ['a header', '{"alg":"ES256","kid":"first","kid":"first"}', claims(',"exp":253402300799')],
  ])('that repeats %s', async (_, header, claims) => {
    await expectInvalid(jwt.authenticator()(await signedText(header, claims)), /twice/)
  })

  test('without any of these faults is accepted', async () => {
    expect(await jwt.authenticator()(await signedText(header, claims(',"exp":253402300799')))).toBeDefined()
  })

  test.each(['dpop+jwt', 'DPoP+JWT', 'logout+jwt', 'application/secevent+jwt', 'vc+sd-jwt', 'stat+jwt'])(
    'of the type %s is not an access token',
    async (typ) => {
      const [other, mine] = [await signingKey('a'), await signingKey('b')]
      await expectInvalid(jwt.authenticator()(await jwt.provider.token({}, { header: { typ } })), /typ/)
      jwt.provider.publish(other, mine)
      const unnamed = await jwt.provider.token({}, { key: mine, header: { typ, kid: undefined } })
      await expectInvalid(jwt.authenticator()(unnamed), /typ/)
    },
  )

  test.each(['at+jwt', 'AT+JWT', 'application/at+jwt', 'JWT', 'jwt'])('unless its type is %s', async (typ) => {
    expect(await jwt.authenticator()(await jwt.provider.token({}, { header: { typ } }))).toBeDefined()
  })

  test('clocks may be half a minute apart', async () => {
    const enter = jwt.authenticator()
    expect(await enter(await jwt.provider.token({ exp: jwt.seconds() - 29 }))).toBeDefined()
    expect(await enter(await jwt.provider.token({ nbf: jwt.seconds() + 30 }))).toBeDefined()
  })

  test('signed by another key with the id of a published one', async () => {
    const stranger = await signingKey('first')
    await expectInvalid(jwt.authenticator()(await jwt.provider.token({}, { key: stranger })), /cannot be verified/)
  })

  test('with a signature, payload or header that was changed', async () => {
    const enter = jwt.authenticator()
    const [header = '', payload = '', signature = ''] = (await jwt.provider.token()).split('.')
    const claims = JSON.parse(String(Buffer.from(payload, 'base64url')))
    await expectInvalid(enter(`${header}.${part({ ...claims, sub: 'root' })}.${signature}`))
    await expectInvalid(enter(`${part({ alg: 'ES256', kid: 'first', x: 1 })}.${payload}.${signature}`))
    await expectInvalid(enter(`${header}.${payload}.${'A'.repeat(signature.length)}`))
    await expectInvalid(enter(`${header}.${payload}.`))
    expect(await enter(`${header}.${payload}.${signature}`)).toBeDefined()
  })

  test('larger than 16 KiB is refused before anything is done with it', async () => {
    await expectInvalid(jwt.authenticator()(await jwt.provider.token({ padding: 'x'.repeat(16 * 1024) })), /16 KiB/)
    expect(jwt.provider.requests).toBe(0)
  })

  test('where JSON Web Tokens are off', async () => {
    await expectInvalid(jwt.authenticator({ disabled: true })(await jwt.provider.token()), /auth\.jwt/)
    expect(jwt.provider.requests).toBe(0)
  })

  test('is refused even if no credential is needed or a static token is configured', async () => {
    const wrong = await jwt.provider.token({ iss: 'https://evil.example' })
    await expectInvalid(jwt.authenticator({}, undefined)(wrong))
    await expectInvalid(jwt.authenticator({}, 'tw_the-token')(wrong))
  })

  test('neither the answer nor the log repeats any of it', async () => {
    const token = await jwt.provider.token({ sub: 'who-it-was', iss: 'https://evil.example/marker' })
    const { message } = await refused(jwt.authenticator()(token))
    const told = message + JSON.stringify(jwt.log.lines)
    for (const secret of [...token.split('.'), 'who-it-was', 'marker']) expect(told).not.toContain(secret)
  })
})

test('B6: the keys come over TLS or from this machine', async () => {
  const { clock, log } = jwt
  const keys = { inUse: false, find: () => undefined }
  const made = (jwksUrl: string) => () =>
    void jwt.open.use(
      createAuthenticate({
        token: undefined,
        keys,
        verify: createJwtVerifier({ config: jwt.provider.config({ jwksUrl }), clock, log }),
        clock,
      }),
    )
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
