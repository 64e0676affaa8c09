import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import {
  type ChallengeOf,
  expiredCredential,
  invalidCredential,
  missingCredential,
  withChallenge,
} from './challenge.ts'
import { type Authenticate, type AuthIdentity, anonymous, operator } from './identity.ts'
import type { JwtVerifier } from './jwt.ts'

interface AuthenticateOptions {
  /** If undefined, no credential is needed: requests without one are anonymous, those with an invalid one are rejected. */
  readonly token: string | undefined
  readonly keys: KeySource
  /** Verifies tokens of the identity provider, if one is configured. Disposed of with the rest. */
  readonly verify?: JwtVerifier | undefined
  readonly clock: Clock
}

/** Authenticates by the gateway's token, by API key, or by a JSON Web Token of an identity provider. */
export function createAuthenticate(options: AuthenticateOptions): Authenticate & AsyncDisposable {
  const { token, keys, verify, clock } = options
  const isToken = token === undefined ? () => false : equals(token)
  const holderOf = keyHolder(keys, clock)
  const digestOf = rememberedDigests()

  /** Anonymous callers may choose any agent only if no credentials exist at all. */
  const nobody = (): AuthIdentity => (verify !== undefined || keys.inUse ? { ...anonymous, agents: [] } : anonymous)

  const authenticate: Authenticate = (authorization, beforeSignature) => {
    if (authorization === undefined) {
      if (token === undefined) return nobody()
      throw missingCredential()
    }
    const credential = bearer(authorization)
    const digested = digestOf(credential)
    // First, because an operator may have chosen a token that looks like a key or a JWT.
    if (isToken(digested)) return operator
    const form = formOf(credential)
    if (form === 'key') return holderOf(digested)
    if (form === 'token') throw unknownToken()
    if (verify === undefined)
      throw invalidCredential('JSON Web Tokens are not accepted: set auth.jwt, or send an API key.')
    return verify(credential, digested, beforeSignature)
  }
  return Object.assign(verify ? telling(authenticate, verify.challengeOf) : authenticate, {
    [Symbol.asyncDispose]: async () => verify?.[Symbol.asyncDispose](),
  })
}

/** Adds to each rejection where to get a token. */
function telling(authenticate: Authenticate, challengeOf: ChallengeOf): Authenticate {
  const tell = (thrown: unknown): never => {
    throw withChallenge(thrown, challengeOf)
  }
  return (authorization, beforeSignature) => {
    try {
      const identity = authenticate(authorization, beforeSignature)
      return identity instanceof Promise ? identity.catch(tell) : identity
    } catch (thrown) {
      return tell(thrown)
    }
  }
}

/** The parts of an API key that authentication needs. */
interface ApiKey {
  readonly id: string
  /** The agents that it may act as; `*` stands for all. */
  readonly agents: readonly string[]
  readonly admin: boolean
  /** Milliseconds since the epoch; never if absent. */
  readonly expires?: number | undefined
}

/** Where API keys are looked up, by `sha256:` and the hexadecimal digest of the whole key. */
interface KeySource {
  /** Whether any key exists. */
  readonly inUse: boolean
  find(hash: string): ApiKey | undefined
}

/**
 * The holder of an API key. The map lookup is not constant-time, but that leaks nothing useful: an attacker cannot
 * choose digests, nor derive a key from one.
 */
function keyHolder(keys: KeySource, clock: Clock): (digest: Buffer) => AuthIdentity {
  return (digest) => {
    const key = keys.find(`sha256:${digest.toString('hex')}`)
    if (key === undefined) {
      throw invalidCredential(
        'The API key is unknown or was revoked: ask the operator for another one (toolway keys create).',
      )
    }
    if (key.expires !== undefined && key.expires <= clock.now()) {
      throw expiredCredential('The API key has expired: ask the operator for another one (toolway keys create).')
    }
    const agents = key.agents.includes('*') ? '*' : key.agents
    return { principal: `key:${key.id}`, authenticated: true, admin: key.admin, agents }
  }
}

type TokenHolder = (authorization: string | undefined) => AuthIdentity

/** One shared token, or none: then every request without a credential is the same anonymous caller. */
export const authenticateToken = (token: string | undefined): TokenHolder =>
  token === undefined
    ? (authorization) => (authorization === undefined ? anonymous : unknown(authorization))
    : bearerTokens([[token, operator]])

/** Several tokens, each with its own identity. */
export function bearerTokens(tokens: readonly (readonly [token: string, identity: AuthIdentity])[]): TokenHolder {
  const known = tokens.map(([token, identity]) => ({ isIt: equals(token), identity }))
  return (authorization) => {
    if (authorization === undefined) throw missingCredential()
    const actual = digest(bearer(authorization))
    let found: AuthIdentity | undefined
    // Compare all, so that timing does not reveal the position.
    for (const { isIt, identity } of known) if (isIt(actual)) found = identity
    return found ?? unknown(authorization)
  }
}

/** Compares digests of equal length in constant time. */
function equals(token: string): (actual: Buffer) => boolean {
  const expected = digest(token)
  return (actual) => timingSafeEqual(actual, expected)
}

/** Also without authentication: a client that sends a credential must not silently become anonymous. */
function unknown(authorization: string): never {
  bearer(authorization)
  throw unknownToken()
}

const unknownToken = () =>
  invalidCredential(
    'The token is not one that this gateway knows: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
  )

/** More than any provider's tokens need; also the limit of node:http for all headers. */
const maxLength = 16 * 1024

/** The bearer token of the Authorization header. */
function bearer(authorization: string): string {
  const given = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
  if (given === undefined) {
    throw invalidCredential('The Authorization header holds no bearer token: send "Authorization: Bearer <token>".')
  }
  if (given.length > maxLength) {
    throw invalidCredential(
      'The credential is longer than 16 KiB: send "Authorization: Bearer <token>" with a smaller one.',
    )
  }
  return given
}

/** The kind of a credential, decided by its form alone, so that an invalid one is never tried as another kind. */
function formOf(credential: string): 'key' | 'jwt' | 'token' {
  if (credential.startsWith('twk_')) return 'key'
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential) ? 'jwt' : 'token'
}

/** Compared and stored instead of the credential itself. */
const digest = (credential: string): Buffer => hash('sha256', credential, 'buffer')

/** Bounds the cache of digests. */
const maxRemembered = 256

/**
 * Caches digests, since clients send their credential with every request. Only the hashing is cached: the digest is
 * looked up each time. The map lookup leaks nothing by timing, since string hashes are seeded per process.
 */
function rememberedDigests(): (credential: string) => Buffer {
  const known = new Map<string, Buffer>()
  return (credential) => {
    const before = known.get(credential)
    if (before) return before
    if (known.size >= maxRemembered) known.clear()
    const made = digest(credential)
    known.set(credential, made)
    return made
  }
}
