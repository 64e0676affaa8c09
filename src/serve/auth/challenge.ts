import type { JwtConfig } from '../../config/schema.ts'
import { HttpError } from '../errors.ts'

const challenge = 'Bearer realm="toolway"'
const invalid = `${challenge}, error="invalid_token"`

/** Nothing was shown: by its standard, the challenge then names no error. */
export const missingCredential = (): HttpError =>
  refused(
    'This gateway needs a credential: send "Authorization: Bearer <token>" with the token it printed at start, or with a credential that its operator gave you.',
    challenge,
  )

/** Something was shown that lets nobody in. The sentence says what to do and never repeats what was shown. */
export const invalidCredential = (sentence: string): HttpError => refused(sentence, invalid)

/** A real credential that is not valid here or now; it does not count as a guess. */
export const expiredCredential = (sentence: string): HttpError => refused(sentence, invalid, true)

export const scopesRule = 'auth.jwt.scopes'

/** The token is good, and good for nothing here: another one of the same provider may be good for more. */
export const insufficientScope = (sentence: string, header: string): HttpError =>
  HttpError.of('DENIED_BY_POLICY', sentence, { headers: { 'WWW-Authenticate': header }, rule: scopesRule })

/** A refusal that tells clients that speak OAuth where to get a token; one that says nothing about tokens stays. */
export function withChallenge(thrown: unknown, challengeOf: ChallengeOf): unknown {
  const header = thrown instanceof HttpError ? thrown.details.headers?.['WWW-Authenticate'] : undefined
  if (!(thrown instanceof HttpError) || (header !== challenge && header !== invalid)) return thrown
  const { status, code, message, details } = thrown
  const told = header === invalid ? challengeOf({ error: 'invalid_token' }) : challengeOf()
  return new HttpError(status, code, message, { ...details, headers: { ...details.headers, 'WWW-Authenticate': told } })
}

const refused = (sentence: string, header: string, genuine?: true) =>
  HttpError.of('AUTH_REQUIRED', sentence, { headers: { 'WWW-Authenticate': header }, genuine })

/** Nobody can tell now whether the credential is good: that is not the caller's fault, and waiting helps. */
export const cannotVerify = (retryAfterMs: number): HttpError => {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const sentence = `This gateway cannot check tokens now, because the identity provider's keys cannot be had: try again in ${seconds} s.`
  return HttpError.of('OVERLOADED', sentence, { retryAfterMs })
}

/** What a client that speaks OAuth is told beside a refusal: where to find out how to get a token, and for what. */
export type ChallengeOf = (refusal?: {
  readonly error?: 'invalid_token' | 'insufficient_scope'
  readonly scopes?: readonly string[]
}) => string

const wellKnown = '/.well-known/oauth-protected-resource'

/** The address of the endpoint as clients know it, as far as the configuration tells. */
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
