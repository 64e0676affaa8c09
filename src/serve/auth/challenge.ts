import type { JwtConfig } from '../../config/schema.ts'
import { HttpError } from '../errors.ts'

const challenge = 'Bearer realm="toolway"'
const invalidTokenChallenge = `${challenge}, error="invalid_token"`

/** The error for a missing credential. As RFC 6750 requires, its challenge does not name an error. */
export const missingCredential = (): HttpError =>
  refuseCredential(
    'This gateway requires a credential: send "Authorization: Bearer <token>" with the token that it printed at start, or with a credential from its operator.',
    challenge,
  )

/** The error for an invalid credential. `sentence` says what to do; it must not repeat the credential. */
export const invalidCredential = (sentence: string): HttpError => refuseCredential(sentence, invalidTokenChallenge)

/** The error for a genuine credential that is not valid here or now. It does not count as an attempt to guess one. */
export const expiredCredential = (sentence: string): HttpError =>
  refuseCredential(sentence, invalidTokenChallenge, true)

export const scopesRule = 'auth.jwt.scopes'

export const insufficientScope = (sentence: string, header: string): HttpError =>
  HttpError.of('DENIED_BY_POLICY', sentence, { headers: { 'WWW-Authenticate': header }, rule: scopesRule })

/** Adds a challenge to a 401 error, which tells OAuth clients where to get a token. Returns other errors unchanged. */
export function withChallenge(thrown: unknown, challengeOf: ChallengeOf): unknown {
  const header = thrown instanceof HttpError ? thrown.details.headers?.['WWW-Authenticate'] : undefined
  if (!(thrown instanceof HttpError) || (header !== challenge && header !== invalidTokenChallenge)) return thrown
  const { status, code, message, details } = thrown
  const changed = header === invalidTokenChallenge ? challengeOf({ error: 'invalid_token' }) : challengeOf()
  return new HttpError(status, code, message, {
    ...details,
    headers: { ...details.headers, 'WWW-Authenticate': changed },
  })
}

const refuseCredential = (sentence: string, header: string, genuine?: true) =>
  HttpError.of('AUTH_REQUIRED', sentence, { headers: { 'WWW-Authenticate': header }, genuine })

/** The error for a credential that cannot be verified now. This is not the caller's fault; a retry may succeed. */
export const cannotVerify = (retryAfterMs: number): HttpError => {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const sentence = `This gateway cannot check tokens now, because the identity provider's keys are unavailable: try again in ${seconds} s.`
  return HttpError.of('OVERLOADED', sentence, { retryAfterMs })
}

/** Builds the WWW-Authenticate header, which tells OAuth clients where to get a token and which scopes to request. */
export type ChallengeOf = (refusal?: {
  readonly error?: 'invalid_token' | 'insufficient_scope'
  readonly scopes?: readonly string[]
}) => string

const wellKnownMetadata = '/.well-known/oauth-protected-resource'

/** The public URL of the MCP endpoint; undefined if none is configured. */
export function resourceOf({ resource, audience }: Pick<JwtConfig, 'resource' | 'audience'>): URL | undefined {
  const named = resource ?? audience
  return /^https?:\/\//.test(named) && URL.canParse(named) ? new URL(named) : undefined
}

/** The path at which a resource's metadata is served (RFC 9728). */
export const metadataPath = (resourcePath: string): string =>
  `${wellKnownMetadata}${resourcePath === '/' ? '' : resourcePath}`

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
