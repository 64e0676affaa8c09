import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose'
import type { JwtConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { Refusal } from '../refusal.ts'
import { type ChallengeOf, challengeFor } from './challenge.ts'
import { identityOf } from './claims.ts'
import type { Identity } from './identity.ts'
import { createKeySet } from './jwks.ts'
import type { PublishedKeys } from './jwks-fetch.ts'
import { refusalOf } from './jwt-refusal.ts'
import { createVerified } from './verified.ts'

/** Signatures that only the holder of a private key can make: what is public must never be enough to sign. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** How far the clocks of the provider and of this machine may be apart. */
const toleranceMs = 30_000

/** A token that names no key is tried with so many of those that are published. */
const maxTries = 16

/** Verifies the JSON Web Tokens of one identity provider. */
export interface JwtVerifier extends AsyncDisposable {
  (token: string, digest: Buffer, beforeSignature?: () => void): Identity | Promise<Identity>
  /** What clients are told who have no token, or one that is not good enough. */
  readonly challengeOf: ChallengeOf
}

export function createJwtVerifier(options: {
  readonly config: JwtConfig
  readonly clock: Clock
  readonly log: Log
}): JwtVerifier {
  const { config, clock, log } = options
  const { issuer, audience, jwksUrl } = config
  const challengeOf = challengeFor(config)
  let verified = createVerified(clock)
  const forgetVerified = () => {
    verified = createVerified(clock)
  }
  const keySet = createKeySet({ url: jwksUrl, clock, log, changed: forgetVerified })

  const claimsOf = async (token: string, keys: PublishedKeys): Promise<JWTPayload> => {
    const checks: JWTVerifyOptions = {
      algorithms,
      issuer,
      audience,
      requiredClaims: ['exp', 'sub'],
      clockTolerance: toleranceMs / 1000,
      currentDate: new Date(clock.now()),
    }
    try {
      return (await jwtVerify(token, keys.find, checks)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      return claimsByAnyKey(token, error, checks)
    }
  }

  const identify = async (token: string, digest: string, keys: PublishedKeys): Promise<Identity> => {
    // Other keys may be published in the meantime: then this goes where nobody looks any more.
    const kept = verified
    const claims = await claimsOf(token, keys)
    const identity = identityOf(claims, config, challengeOf)
    kept.keep(digest, identity, (claims.exp as number) * 1000 + toleranceMs)
    return identity
  }

  const verify = async (token: string, digest: string): Promise<Identity> => {
    try {
      const keys = await keySet.current()
      return await identify(token, digest, keys).catch(async (error: unknown) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        const renewed = await keySet.renewed()
        if (renewed === keys) throw error
        return identify(token, digest, renewed)
      })
    } catch (error) {
      throw error instanceof Refusal ? error : refusalOf(error, config, log)
    }
  }

  const verifier = (token: string, digested: Buffer, beforeSignature?: () => void) => {
    const digest = digested.toString('base64url')
    const known = verified.get(digest)
    if (known) return known
    beforeSignature?.()
    return verify(token, digest)
  }
  return Object.assign(verifier, { challengeOf, [Symbol.asyncDispose]: () => keySet[Symbol.asyncDispose]() })
}

async function claimsByAnyKey(
  token: string,
  candidates: errors.JWKSMultipleMatchingKeys,
  checks: JWTVerifyOptions,
): Promise<JWTPayload> {
  let tries = 0
  for await (const key of candidates) {
    if (++tries > maxTries) break
    try {
      return (await jwtVerify(token, key, checks)).payload
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    }
  }
  throw new errors.JWSSignatureVerificationFailed()
}
