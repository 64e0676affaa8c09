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
  /** Undefined where no credential is needed: who shows none is anonymous then, and who shows a wrong one is refused. */
  readonly token: string | undefined
  readonly keys: KeySource
  /** For the tokens of an identity provider, where there is one. It is disposed of with the rest. */
  readonly verify?: JwtVerifier | undefined
  readonly clock: Clock
}

/** All the ways in: the gateway's token, API keys, and JSON Web Tokens of an identity provider. */
export function createAuthenticate(options: AuthenticateOptions): Authenticate & AsyncDisposable {
  const { token, keys, verify, clock } = options
  const isToken = token === undefined ? () => false : equals(token)
  const holderOf = keyHolder(keys, clock)
  const digestOf = rememberedDigests()

  /** Where nobody has a credential everybody may say who they are; where some have one, the others are the default. */
  const nobody = (): AuthIdentity => (verify !== undefined || keys.inUse ? { ...anonymous, agents: [] } : anonymous)

  const authenticate: Authenticate = (authorization, beforeSignature) => {
    if (authorization === undefined) {
      if (token === undefined) return nobody()
      throw missingCredential()
    }
    const credential = bearer(authorization)
    const digested = digestOf(credential)
    // An operator may have chosen a token of any form, so it comes first; it is one exact value and nothing else.
    if (isToken(digested)) return operator
    const form = formOf(credential)
    if (form === 'key') return holderOf(digested)
    if (form === 'token') throw unknownToken()
    if (verify === undefined)
      throw invalidCredential('JSON Web Tokens are not taken here: set auth.jwt, or send an API key.')
    return verify(credential, digested, beforeSignature)
  }
  return Object.assign(verify ? telling(authenticate, verify.challengeOf) : authenticate, {
    [Symbol.asyncDispose]: async () => verify?.[Symbol.asyncDispose](),
  })
}

/** Whoever is refused is told where tokens are to be had. */
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

/** An API key as far as the door has to know it. */
interface ApiKey {
  readonly id: string
  /** The agents that it may act as; `*` among them is all of them. */
  readonly agents: readonly string[]
  readonly admin: boolean
  /** Milliseconds since the epoch; never if absent. */
  readonly expires?: number | undefined
}

/** Where API keys are looked up, by `sha256:` and the hexadecimal digest of the whole key. */
interface KeySource {
  /** Whether anybody was ever given one. */
  readonly inUse: boolean
  find(hash: string): ApiKey | undefined
}

/**
 * The holder of an API key. Looking the digest up in a map is no leak: its time may tell how a digest compares with
 * those that are kept, but nobody can choose digests, nor get from one back to the key.
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

/** One shared token, or none at all: then everybody who shows nothing is the same anonymous caller. */
export const authenticateToken = (token: string | undefined): TokenHolder =>
  token === undefined
    ? (authorization) => (authorization === undefined ? anonymous : unknown(authorization))
    : bearerTokens([[token, operator]])

/** Several tokens, each with an identity of its own. */
export function bearerTokens(tokens: readonly (readonly [token: string, identity: AuthIdentity])[]): TokenHolder {
  const known = tokens.map(([token, identity]) => ({ isIt: equals(token), identity }))
  return (authorization) => {
    if (authorization === undefined) throw missingCredential()
    const actual = digest(bearer(authorization))
    let found: AuthIdentity | undefined
    // All are compared, so the position does not show in the time it takes.
    for (const { isIt, identity } of known) if (isIt(actual)) found = identity
    return found ?? unknown(authorization)
  }
}

/** Compares digests, which have one length: nothing about the token shows in the time it takes. */
function equals(token: string): (actual: Buffer) => boolean {
  const expected = digest(token)
  return (actual) => timingSafeEqual(actual, expected)
}

/** Also where no credential is needed: whoever shows one wants to be somebody, and must not become nobody unawares. */
function unknown(authorization: string): never {
  bearer(authorization)
  throw unknownToken()
}

const unknownToken = () =>
  invalidCredential(
    'The token is not one that this gateway knows: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
  )

/** More than any provider's tokens need, and no more than a request's headers may hold by themselves. */
const maxLength = 16 * 1024

/** What the Authorization header holds; there is one scheme, and one credential in it. */
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

/** Where a credential is looked for. Its form alone decides, so that a wrong one is never tried as something else. */
function formOf(credential: string): 'key' | 'jwt' | 'token' {
  if (credential.startsWith('twk_')) return 'key'
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(credential) ? 'jwt' : 'token'
}

/** What is compared and kept instead of the credential itself. */
const digest = (credential: string): Buffer => hash('sha256', credential, 'buffer')

/** More credentials than this at one time are no longer worth remembering. */
const maxRemembered = 256

/**
 * The same for one credential after another: clients show theirs with every request. What it is good for is still asked
 * each time. The look-up tells nothing by its time, since nobody can choose how texts are hashed in this process.
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
