import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { memoize } from '../../lib/memoize.ts'
import {
  type ChallengeOf,
  expiredCredential,
  invalidCredential,
  missingCredential,
  withChallenge,
} from './challenge.ts'
import { type Authenticate, type AuthIdentity, anonymous, operator } from './identity.ts'
import type { JwtVerifier } from './jwt.ts'

/** Authenticates requests by the gateway's token, an API key, or a JSON Web Token from an identity provider. */
export function createAuthenticate(options: {
  /** If undefined, requests without a credential are anonymous. Invalid credentials are still rejected. */
  readonly token: string | undefined
  readonly keys: KeySource
  /** Verifies tokens from the identity provider. Disposed of with this authenticator. */
  readonly verify?: JwtVerifier | undefined
  readonly clock: Clock
}): Authenticate & AsyncDisposable {
  const { token, keys, verify, clock } = options
  const tokenDigest = token === undefined ? undefined : digestCredential(token)
  // Clients send their credential with every request. Revoked ones are still rejected, because each request looks up the
  // digest. Timing leaks nothing: string hashes are seeded per process.
  const digestOf = memoize(digestCredential, 256, maxCredentialLength)

  /** The identity of callers without a credential. They may choose any agent only if no credentials are configured. */
  const nobody = (): AuthIdentity => (verify !== undefined || keys.inUse ? { ...anonymous, agents: [] } : anonymous)

  const authenticate: Authenticate = (authorization, beforeSignature) => {
    if (authorization === undefined) {
      if (token === undefined) return nobody()
      throw missingCredential()
    }
    const credential = bearerToken(authorization)
    const digested = digestOf(credential)
    // Check the token first: the operator may have chosen one that looks like a key or a JWT.
    if (tokenDigest && timingSafeEqual(digested, tokenDigest)) return operator
    // Then the keys: one whose hash is in the configuration can have any form.
    const key = keys.find(`sha256:${digested.toString('hex')}`)
    if (key) return keyHolder(key, keys, clock)
    const form = credentialForm(credential)
    if (form === 'key') throw unknownApiKey()
    if (form === 'token') throw unknownToken()
    if (verify === undefined)
      throw invalidCredential('JSON Web Tokens are not accepted: set auth.jwt, or send an API key.')
    return verify(credential, digested, beforeSignature)
  }
  return Object.assign(verify ? addingChallenge(authenticate, verify.challengeOf) : authenticate, {
    [Symbol.asyncDispose]: async () => verify?.[Symbol.asyncDispose](),
  })
}

/** Adds a challenge to rejections. The challenge tells clients where to get a token. */
function addingChallenge(authenticate: Authenticate, challengeOf: ChallengeOf): Authenticate {
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

interface ApiKey {
  readonly id: string
  /** Agents that the key's holder may act as; `*` means all. */
  readonly agents: readonly string[]
  readonly admin: boolean
  /** The named endpoints that the key may connect to; undefined if it may use all. */
  readonly endpoints?: readonly string[] | undefined
  /** Expiry in milliseconds since the epoch. Without it, the key does not expire. */
  readonly expires?: number | undefined
}

/** Looks up API keys. A key is identified by `sha256:` followed by the hexadecimal digest of the whole key. */
interface KeySource {
  readonly inUse: boolean
  find(hash: string): ApiKey | undefined
  used?(key: ApiKey): void
}

/** The identity of a key's holder. Timing leaks nothing useful: attackers can neither choose digests nor reverse them. */
function keyHolder(key: ApiKey, keys: KeySource, clock: Clock): AuthIdentity {
  if (key.expires !== undefined && key.expires <= clock.now()) {
    throw expiredCredential('The API key has expired: ask the operator for another one (toolway keys create).')
  }
  keys.used?.(key)
  const agents = key.agents.includes('*') ? '*' : key.agents
  const identity: AuthIdentity = { principal: `key:${key.id}`, authenticated: true, admin: key.admin, agents }
  return key.endpoints ? { ...identity, endpoints: key.endpoints } : identity
}

const unknownApiKey = () =>
  invalidCredential('The API key is unknown or was revoked: ask the operator for another one (toolway keys create).')

/** The error for an unknown token, thrown even if none is required: senders must not silently become anonymous. */
const unknownToken = () =>
  invalidCredential(
    'Unknown token: send "Authorization: Bearer <token>" with the token that this gateway printed at start, or with a credential from its operator.',
  )

/** Maximum length of a credential. Real ones are shorter, and node:http limits all headers together to this size. */
const maxCredentialLength = 16 * 1024

function bearerToken(authorization: string): string {
  const token = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1]
  if (token === undefined) {
    throw invalidCredential('The Authorization header contains no bearer token: send "Authorization: Bearer <token>".')
  }
  if (token.length > maxCredentialLength) {
    throw invalidCredential(
      'The credential is longer than 16 KiB: send "Authorization: Bearer <token>" with a shorter one.',
    )
  }
  return token
}

/** The kind of an unknown credential, based only on its format. */
function credentialForm(credential: string): 'key' | 'jwt' | 'token' {
  if (credential.startsWith('twk_')) return 'key'
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential) ? 'jwt' : 'token'
}

/** The digest of a credential. Digests are compared and stored instead of credentials. */
const digestCredential = (credential: string): Buffer => hash('sha256', credential, 'buffer')
