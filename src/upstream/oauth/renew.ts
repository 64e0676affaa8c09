import { scopesIn } from './challenge.ts'
import type { Discovered } from './discover.ts'
import type { Demand, Grant } from './grants.ts'
import type { IssuerMetadata } from './issuer-metadata.ts'
import { OAuthProblem } from './problem.ts'
import { scopesForItself } from './scopes.ts'
import { configuredClient, type OAuthParts, type OAuthSettings, signingKey } from './settings.ts'
import { requestTokens, type Tokens } from './token-request.ts'
import { type Reach, reachOf } from './web.ts'

/** A grant as a token endpoint has just given it. */
export function grantFrom(
  tokens: Tokens,
  rest: Omit<Grant, keyof Tokens | 'grantedAt'> & { scopes: readonly string[] },
  now: number,
): Grant {
  const { scopes: asked, ...kept } = rest
  return { ...kept, ...tokens, scopes: [...(tokens.scopes ?? asked)], grantedAt: now }
}

/** The next token of a grant. A refresh token that comes along replaces the one before, which may be void by now. */
export async function refreshed(
  { accessToken: _, expiresAt: __, ...grant }: Grant,
  issuer: IssuerMetadata,
  settings: OAuthSettings,
  parts: OAuthParts,
  reach: Reach,
): Promise<Grant> {
  if (grant.refreshToken === undefined) throw new OAuthProblem('the grant has ended', { code: 'invalid_grant' })
  const configured = configuredClient(settings)
  const tokens = await requestTokens({
    issuer,
    // Its secret may have been changed in the configuration since.
    client: configured?.id === grant.client.id ? configured : grant.client,
    signing: signingKey(settings),
    parameters: { grant_type: 'refresh_token', refresh_token: grant.refreshToken, resource: grant.resource },
    reach,
    ...parts,
  })
  return grantFrom(tokens, grant, parts.clock.now())
}

/** A token for Toolway itself, with nobody in front of a browser. */
export async function obtained(
  { issuer, resource, scopes: supported }: Discovered,
  demand: Demand,
  settings: OAuthSettings,
  parts: OAuthParts,
  server: URL,
): Promise<Grant> {
  const client = configuredClient(settings)
  if (!client) throw new OAuthProblem('auth.clientId is not set')
  const { more, scopes: challenged } = demand
  const scopes = scopesForItself({ configured: settings.scopes, challenged, supported, more, offered: issuer.scopes })
  const tokens = await requestTokens({
    issuer,
    client,
    signing: signingKey(settings),
    parameters: {
      grant_type: 'client_credentials',
      resource,
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    },
    reach: await reachOf(server, parts.placeOf),
    ...parts,
  })
  // The secret stays where it is: in the configuration.
  return grantFrom(
    tokens,
    { issuer: issuer.issuer, resource, client: { id: client.id }, scopes: [...scopesIn(scopes.join(' '))] },
    parts.clock.now(),
  )
}
