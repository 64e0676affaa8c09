import type { JwtConfig } from '../../config/schema.ts'
import { HttpError } from '../errors.ts'

const challenge = 'Bearer realm="toolway"'
const invalid = `${challenge}, error="invalid_token"`

/** Without a credential the challenge names no error (RFC 6750). */
export const missingCredential = (): HttpError =>
  refused(
    'This gateway needs a credential: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
    challenge,
  )

/** An invalid credential. The message says what to do and never repeats the credential. */
export const invalidCredential = (sentence: string): HttpError => refused(sentence, invalid)

/** A genuine credential that is not valid here or now; it does not count as a guess. */
export const expiredCredential = (sentence: string): HttpError => refused(sentence, invalid, true)

export const scopesRule = 'auth.jwt.scopes'

/** A valid token without a scope that is needed here. */
export const insufficientScope = (sentence: string, header: string): HttpError =>
  HttpError.of('DENIED_BY_POLICY', sentence, { headers: { 'WWW-Authenticate': header }, rule: scopesRule })

/** Adds to a 401 where OAuth clients can get a token; leaves other errors unchanged. */
export function withChallenge(thrown: unknown, challengeOf: ChallengeOf): unknown {
  const header = thrown instanceof HttpError ? thrown.details.headers?.['WWW-Authenticate'] : undefined
  if (!(thrown instanceof HttpError) || (header !== challenge && header !== invalid)) return thrown
  const { status, code, message, details } = thrown
  const told = header === invalid ? challengeOf({ error: 'invalid_token' }) : challengeOf()
  return new HttpError(status, code, message, { ...details, headers: { ...details.headers, 'WWW-Authenticate': told } })
}

const refused = (sentence: string, header: string, genuine?: true) =>
  HttpError.of('AUTH_REQUIRED', sentence, { headers: { 'WWW-Authenticate': header }, genuine })

/** The credential cannot be checked now; that is not the caller's fault, and retrying helps. */
export const cannotVerify = (retryAfterMs: number): HttpError => {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const sentence = `This gateway cannot check tokens now, because the identity provider's keys are unavailable: try again in ${seconds} s.`
  return HttpError.of('OVERLOADED', sentence, { retryAfterMs })
}

/** The WWW-Authenticate header for OAuth clients: where to get a token, and with which scopes. */
export type ChallengeOf = (refusal?: {
  readonly error?: 'invalid_token' | 'insufficient_scope'
  readonly scopes?: readonly string[]
}) => string

const wellKnown = '/.well-known/oauth-protected-resource'

/** The public URL of the endpoint, if the configuration has one. */
export function resourceOf({ resource, audience }: Pick<JwtConfig, 'resource' | 'audience'>): URL | undefined {
  const named = resource ?? audience
  return /^https?:\/\//.test(named) && URL.canParse(named) ? new URL(named) : undefined
}

/** Where the metadata of a resource is published (RFC 9728). */
export const metadataPath = (resourcePath: string): string => `${wellKnown}${resourcePath === '/' ? '' : resourcePath}`

export function challengeFor(jwt: JwtConfig): ChallengeOf {
  const resource = resourceOf(jwt)
  const place = resource && new URL(metadataPath(resource.pathname), resource.origin).href
  const known = Object.keys(jwt.scopes)
  return ({ error, scopes = known } = {}) =>
    [
      'Bearer realm="toolway"',
      ...(place === undefined ? [] : [`resource_metadata="${place}"`]),
      ...(scopes.length === 0 ? [] : [`scope="${scopes.join(' ')}"`]),
      ...(error === undefined ? [] : [`error="${error}"`]),
    ].join(', ')
}
