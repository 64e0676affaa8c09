import { errors } from 'jose'
import type { JwtConfig } from '../../config/schema.ts'
import type { Log } from '../../core/log.ts'
import type { Refusal } from '../refusal.ts'
import { outdated, wrong } from './refusals.ts'

/** What a bearer can do about a token that was not accepted. Nothing of the token itself is told or logged. */
export function refusalOf(error: unknown, config: JwtConfig, log: Log): Refusal {
  const code = error instanceof errors.JOSEError ? error.code : undefined
  if (code === undefined) log.warn({ cause: nameOf(error) }, 'A JSON Web Token could not be checked; it is refused')
  else log.debug({ cause: code }, 'A JSON Web Token was refused')
  // Claims are looked at after the signature: the issuer has made such a token.
  const signed = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed
  return signed ? outdated(sentenceFor(error, config)) : wrong(sentenceFor(error, config))
}

function sentenceFor(error: unknown, { issuer, audience }: JwtConfig): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired: get a new one from your identity provider.'
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error
    if (reason === 'missing') return `The token has no ${claim} claim: ask your identity provider for one that has.`
    if (claim === 'nbf') return 'The token is not valid yet: wait, or set the clock.'
    if (claim === 'iss') return `The token is of another issuer: get one from ${issuer}.`
    if (claim === 'aud') return `The token is for another audience: get one for ${audience}.`
    return `The token's ${claim} claim is not as it must be: get another one from your identity provider.`
  }
  if (error instanceof errors.JWKSNoMatchingKey) {
    return 'The token is signed with a key that its issuer has not published: get a new one from your identity provider.'
  }
  return 'The token is not a JSON Web Token that this gateway can trust: get a new one from your identity provider.'
}

/** The message of an unexpected error may quote what was being read. */
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error)
