import { hash } from 'node:crypto'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { type Provider, startProvider } from '../../../tests/fixtures/identity-provider.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { HttpError } from '../errors.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Authenticate } from './identity.ts'
import { createJwtVerifier } from './jwt.ts'

const token = 'tw_the-token'
const key = 'twk_ci_the-key'
const hashed = `sha256:${hash('sha256', key, 'hex')}`
let provider: Provider
let authenticators: (Authenticate & AsyncDisposable)[]
let good: string

beforeAll(async () => {
  provider = await startProvider()
  good = await provider.token()
  const keys = {
    inUse: true,
    find: (wanted: string) => (wanted === hashed ? { id: 'ci', agents: [], admin: false } : undefined),
  }
  const made = { config: provider.config(), clock: systemClock, log: silentLog }
  authenticators = [token, undefined].map((known) =>
    createAuthenticate({ keys, verify: createJwtVerifier(made), clock: systemClock, token: known }),
  )
  for (const authenticate of authenticators) expect(await authenticate(`Bearer ${good}`)).toBeDefined()
})
afterAll(async () => {
  for (const authenticate of authenticators) await authenticate[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

/** The identity, or what was thrown instead. */
const outcomeOf = async (authenticate: Authenticate, authorization: string) =>
  (async () => authenticate(authorization))().catch((error: unknown) => error)

/** Refused with a 401 by every authenticate, whatever the form of it. */
async function isRefused(authorization: string): Promise<void> {
  for (const authenticate of authenticators) {
    const outcome = await outcomeOf(authenticate, authorization)
    expect(outcome).toBeInstanceOf(HttpError)
    expect(outcome).toMatchObject({ status: 401, details: { headers: { 'WWW-Authenticate': expect.anything() } } })
  }
}

const base64url = fc.base64String({ maxLength: 60 }).map((text) => text.replace(/[+/=]/g, '_'))
const json = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url'))
const header = fc
  .record(
    {
      alg: fc.constantFrom('none', 'HS256', 'RS256', 'ES256', 'EdDSA', 'x', ''),
      kid: fc.oneof(fc.constantFrom('first', '../first', '__proto__'), fc.string(), fc.jsonValue()),
      typ: fc.string(),
      crit: fc.jsonValue(),
      jwk: fc.jsonValue(),
      b64: fc.boolean(),
    },
    { requiredKeys: ['alg'] },
  )
  .map((value) => Buffer.from(JSON.stringify(value)).toString('base64url'))

test('B6: no text in the Authorization header is accepted or causes an unexpected error', async () => {
  const anything = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 200 }), fc.string({ maxLength: 200 }))
  const credential = fc.oneof(
    anything,
    anything.map((text) => `twk_${text}`),
    anything.map((text) => `tw_${text}`),
    fc.tuple(base64url, base64url, base64url).map((parts) => parts.join('.')),
    fc.tuple(fc.oneof(header, json), json, base64url).map((parts) => parts.join('.')),
  )
  const scheme = fc.oneof(fc.constantFrom('Bearer ', 'bearer ', 'Bearer  ', 'Bearer\t', 'Basic ', ''), fc.string())
  await fc.assert(
    fc.asyncProperty(scheme, credential, async (before, given) => {
      fc.pre(![token, key, good].includes(given.trim()))
      await isRefused(before + given)
    }),
    runs(200, 10_000),
  )
})

test('B6: a credential with one changed character is refused', async () => {
  const change = fc.record({
    which: fc.constantFrom(0, 1, 2),
    place: fc.nat(),
    to: fc.constantFrom('a', 'Z', '-', '.', '=', ' '),
  })
  await fc.assert(
    fc.asyncProperty(change, async ({ which, place, to }) => {
      const credential = [token, key, good][which] as string
      const at = place % credential.length
      const changed = credential.slice(0, at) + to + credential.slice(at + 1)
      fc.pre(changed !== credential && !sameBytes(changed, credential))
      for (const authenticate of authenticators) {
        const outcome = await outcomeOf(authenticate, `Bearer ${changed}`)
        expect(outcome).toBeInstanceOf(HttpError)
      }
    }),
    runs(200, 10_000),
  )
})

/** The last character of base64url has bits that mean nothing: another one may stand for the same signature. */
const sameBytes = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((token) => token.split('.'))
  return (
    a?.length === 3 &&
    b?.length === 3 &&
    a.every((part, index) => Buffer.from(part, 'base64url').equals(Buffer.from(b[index] as string, 'base64url')))
  )
}
