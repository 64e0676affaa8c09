import type { JwtConfig } from '../../config/schema.ts'

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
