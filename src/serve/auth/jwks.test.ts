import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createManualClock, type ManualClock } from '../../../tests/fixtures/clock.ts'
import { type Provider, signingKey, startProvider } from '../../../tests/fixtures/identity-provider.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import { startProxy } from '../../../tests/fixtures/proxy.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { HttpError } from '../errors.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Authenticate } from './identity.ts'
import { createJwtVerifier } from './jwt.ts'

let clock: ManualClock
let log: KeptLog
let provider: Provider
let open: AsyncDisposableStack
let authenticate: Authenticate

beforeEach(async () => {
  open = new AsyncDisposableStack()
  clock = createManualClock()
  log = createKeptLog()
  provider = open.use(await startProvider(clock.now))
  const jwt = provider.config()
  authenticate = open.use(
    createAuthenticate({
      token: undefined,
      keys: { inUse: false, find: () => undefined },
      verify: createJwtVerifier({ config: jwt, clock, log }),
      clock,
    }),
  )
})
afterEach(() => open.disposeAsync())

/** 200 or the status of the refusal. */
const statusOf = async (token: string): Promise<number> => {
  try {
    await authenticate(`Bearer ${token}`)
    return 200
  } catch (error) {
    if (error instanceof HttpError) return error.status
    throw error
  }
}
const minutes = 60_000

describe('B6: the published keys', () => {
  test('are fetched once, when the first token comes, also if many come at once', async () => {
    expect(provider.requests).toBe(0)
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, number) => provider.token({ sub: `s${number}` })))
    expect(await Promise.all(tokens.map(statusOf))).toEqual(tokens.map(() => 200))
    expect(provider.requests).toBe(1)
  })

  test('are fetched again for a key that is new', async () => {
    expect(await statusOf(await provider.token())).toBe(200)
    const second = await signingKey('second')
    provider.publish(provider.first, second)
    clock.advance(30_000)
    expect(await statusOf(await provider.token({}, { key: second }))).toBe(200)
    expect(provider.requests).toBe(2)
  })

  test('are fetched at most once in half a minute for unknown keys', async () => {
    expect(await statusOf(await provider.token())).toBe(200)
    const stranger = await signingKey('stranger')
    for (let number = 0; number < 50; number++) {
      const token = await provider.token({}, { key: stranger, header: { kid: `kid-${number}` } })
      expect(await statusOf(token)).toBe(401)
    }
    expect(provider.requests).toBe(1)
    clock.advance(30_000)
    const flood = Array.from({ length: 50 }, (_, number) =>
      provider.token({}, { key: stranger, header: { kid: `more-${number}` } }),
    )
    expect(new Set(await Promise.all((await Promise.all(flood)).map(statusOf)))).toEqual(new Set([401]))
    expect(provider.requests).toBe(2)
  })

  test('that were removed are refused with the tokens that they signed, also those seen before', async () => {
    const second = await signingKey('second')
    const signedByFirst = await provider.token({ exp: clock.now() / 1000 + 86_400 })
    expect(await statusOf(signedByFirst)).toBe(200)
    provider.publish(second)
    clock.advance(30_000)
    expect(await statusOf(await provider.token({}, { key: second }))).toBe(200)
    expect(await statusOf(signedByFirst)).toBe(401)
  })

  test('are asked for again after ten minutes, even if the same token comes all the time', async () => {
    const token = await provider.token({ exp: clock.now() / 1000 + 86_400 })
    for (let minute = 0; minute <= 16; minute++) {
      expect(await statusOf(token)).toBe(200)
      clock.advance(minutes)
    }
    expect(provider.requests).toBe(2)
    provider.publish(await signingKey('second'))
    const seen: number[] = []
    for (let minute = 0; minute <= 16; minute++) {
      seen.push(await statusOf(token))
      clock.advance(minutes)
    }
    expect(seen.at(-1)).toBe(401)
  })

  test('a token that was verified is refused from its end on', async () => {
    const token = await provider.token({ exp: clock.now() / 1000 + 60 })
    expect(await statusOf(token)).toBe(200)
    clock.advance(89_000)
    expect(await statusOf(token)).toBe(200)
    clock.advance(1_000)
    expect(await statusOf(token)).toBe(401)
  })
})

test('G1: a provider behind the proxy of a company is asked through it, with its certificate checked', async () => {
  await using proxy = await startProxy()
  vi.stubEnv('HTTPS_PROXY', proxy.url)
  const jwksUrl = provider.config().jwksUrl.replace(/^http:\/\/[^:]+/, 'https://id.invalid')
  await using verify = createJwtVerifier({ config: { ...provider.config(), jwksUrl }, clock, log })
  try {
    // The one of the tests does not speak TLS, so that nobody can vouch for it.
    await expect(verify(await provider.token(), Buffer.alloc(32))).rejects.toMatchObject({ status: 503 })
  } finally {
    vi.unstubAllEnvs()
  }
  expect(proxy.asked).toEqual([expect.stringMatching(/^CONNECT id\.invalid:\d+$/)])
})

describe('B6: a provider that fails', () => {
  const down = () => provider.behave((response) => response.destroy())

  test('before any key is known is a 503 with a retry time, and is not asked again at once', async () => {
    down()
    const token = await provider.token()
    const refusal = await Promise.resolve(authenticate(`Bearer ${token}`)).catch((error: HttpError) => error)
    expect(refusal).toMatchObject({ status: 503, details: { headers: { 'Retry-After': '10' } } })
    expect((refusal as HttpError).message).toMatch(/identity provider/)
    expect(await statusOf(token)).toBe(503)
    expect(provider.requests).toBe(1)
    expect(log.lines).toEqual([expect.objectContaining({ level: 'warn' })])
    expect(JSON.stringify(log.lines)).not.toContain(token)
    provider.recover()
    clock.advance(10_000)
    expect(await statusOf(token)).toBe(200)
  })

  test('does not affect tokens of known keys for an hour', async () => {
    expect(await statusOf(await provider.token())).toBe(200)
    down()
    clock.advance(59 * minutes)
    expect(await statusOf(await provider.token())).toBe(200)
    clock.advance(minutes)
    expect(await statusOf(await provider.token())).toBe(503)
    provider.recover()
    clock.advance(10_000)
    expect(await statusOf(await provider.token())).toBe(200)
  })

  test('causes a 503 for tokens of a new key', async () => {
    expect(await statusOf(await provider.token())).toBe(200)
    down()
    clock.advance(30_000)
    const second = await signingKey('second')
    expect(await statusOf(await provider.token({}, { key: second }))).toBe(503)
    expect(await statusOf(await provider.token({ sub: 'known' }))).toBe(200)
  })

  test('hanging is given five seconds, once for all waiting requests', async () => {
    provider.behave(() => {})
    const waiting = Promise.all(
      [provider.token(), provider.token({ sub: 'bert' })].map(async (token) => statusOf(await token)),
    )
    await until(() => provider.open === 1, { what: 'the request' })
    await clock.pass(4_999)
    expect(provider.open).toBe(1)
    await clock.pass(1)
    expect(await waiting).toEqual([503, 503])
    expect(provider.requests).toBe(1)
  })

  test('hanging in the middle of its response is given five seconds, too', async () => {
    provider.behave((response) => void response.write('{"keys":['))
    const waiting = statusOf(await provider.token())
    await until(() => provider.open === 1, { what: 'the request' })
    await clock.pass(5_000)
    expect(await waiting).toBe(503)
  })

  test.each<[string, (provider: Provider) => Parameters<Provider['behave']>[0]]>([
    ['an error', () => (response) => response.writeHead(500).end('{"keys":[]}')],
    ['no JSON', () => (response) => response.end('<html>')],
    ['no key set', () => (response) => response.end('{"keys":7}')],
    ['nothing', () => (response) => response.end()],
    ['a key set without end', () => (response) => response.end(`{"keys":[${'{},'.repeat(100_000)}{}]}`)],
    [
      'a redirect, even to good keys',
      ({ first }) =>
        (response) => {
          if (response.req.url === '/good') response.end(JSON.stringify({ keys: [first.jwk] }))
          else response.writeHead(302, { location: '/good' }).end()
        },
    ],
  ])('answering with %s counts as unavailable', async (_, behaviour) => {
    provider.behave(behaviour(provider))
    expect(await statusOf(await provider.token())).toBe(503)
    expect(provider.requests).toBe(1)
  })

  test('publishing an invalid key affects only tokens of that key', async () => {
    const broken = { kty: 'EC', crv: 'P-256', x: 'AAAA', y: '!', kid: 'broken', alg: 'ES256' }
    provider.behave((response) => response.end(JSON.stringify({ keys: [broken, provider.first.jwk] })))
    expect(await statusOf(await provider.token({}, { header: { kid: 'broken' } }))).toBe(401)
    expect(await statusOf(await provider.token())).toBe(200)
  })
})
