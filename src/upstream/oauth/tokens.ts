import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { basicAuth } from '../../lib/url.ts'
import { scopesIn } from './authorization.ts'
import type { DiscoveredIssuer, IssuerMetadata } from './discovery.ts'
import type { AuthDemand, Grant, OAuthClient, OAuthSettings, ProtectedServer } from './grants.ts'
import { codeIn, isClientRejected, OAuthError, type OAuthHttpResponse } from './web.ts'

const tokenResponse = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,16384}$/),
  token_type: z.string().regex(/^bearer$/i),
  expires_in: z.coerce.number().nonnegative().optional(),
  refresh_token: z.string().min(1).optional(),
  scope: z.string().optional(),
})

/** Client authentication methods in order of preference. */
export const preferredAuthMethods = ['client_secret_basic', 'client_secret_post', 'none']

const maxSeconds = 10 * 365 * 24 * 3_600

type GrantRequest = Omit<Grant, 'accessToken' | 'expiresAt' | 'grantedAt'>

/**
 * Sends a `grant_type` and its parameters to the token endpoint. The client authenticates only to its own issuer.
 * A refresh token in the response replaces the one in `request`, which may be invalid by now.
 */
export async function requestGrant(
  server: ProtectedServer,
  issuer: IssuerMetadata,
  client: OAuthClient,
  request: GrantRequest,
  parameters: Readonly<Record<string, string>>,
): Promise<Grant> {
  const { web, clock } = server.parts
  const reach = await server.reach()
  const { authorization, ...shown } = await clientAuthentication(server, issuer, client)
  const type = 'application/x-www-form-urlencoded'
  const headers = { 'content-type': type, ...(authorization !== undefined && { authorization }) }
  const post = (proof: Readonly<Record<string, string>>) =>
    web.post(issuer.token, reach, {
      body: new URLSearchParams({ ...parameters, resource: request.resource, ...proof }).toString(),
      headers,
    })
  const asked = clock.now()
  let answer = await post(shown)
  // The authorization server of the Python SDK requires client_id in the body, too; Okta's refuses a request that has both.
  if (authorization !== undefined && answer.status !== 200 && isClientRejected(tokenRefusal(issuer, answer)))
    answer = await post({ client_id: client.id })
  if (answer.status !== 200) throw tokenRefusal(issuer, answer)
  const parsed = tokenResponse.safeParse(answer.body)
  if (!parsed.success) throw new OAuthError(`${issuer.token.origin} did not return a valid token of type Bearer`)
  const { access_token, expires_in, refresh_token, scope } = parsed.data
  return {
    ...request,
    accessToken: access_token,
    ...(expires_in !== undefined && { expiresAt: asked + Math.min(expires_in, maxSeconds) * 1000 }),
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(scope !== undefined && { scopes: [...scopesIn(scope)] }),
    grantedAt: clock.now(),
  }
}

/** The Authorization header, or the parameters in the body, that authenticate the client. */
async function clientAuthentication(
  { settings, parts }: ProtectedServer,
  issuer: IssuerMetadata,
  client: OAuthClient,
): Promise<Record<string, string>> {
  const { id, secret = '' } = client
  if (settings.privateKey !== undefined) return signedAssertion(settings, id, issuer.issuer, parts.clock.now())
  const method = authMethodOf(client, issuer)
  if (method !== 'client_secret_basic')
    return { client_id: id, ...(method === 'client_secret_post' && { client_secret: secret }) }
  const [user = '', password = ''] = [id, secret].map((part) => new URLSearchParams([['', part]]).toString().slice(1))
  return { authorization: basicAuth(user, password) }
}

/** The authentication method for the token endpoint: the registered one, or the best one that both sides support. */
function authMethodOf({ method, secret }: OAuthClient, { authMethods }: Pick<IssuerMetadata, 'authMethods'>) {
  if (method !== undefined && (method === 'none' || secret !== undefined)) return method
  if (secret === undefined) return 'none'
  return preferredAuthMethods.slice(0, 2).find((one) => authMethods.includes(one)) ?? 'client_secret_basic'
}

/** A signed assertion (RFC 7523) that authenticates the client to this issuer only, and is valid for a minute. */
async function signedAssertion(settings: OAuthSettings, id: string, issuer: string, nowMs: number) {
  const { privateKey = '', signingAlgorithm: alg } = settings
  const { importPKCS8, SignJWT } = await import('jose')
  const key = await importPKCS8(privateKey, alg).catch(() => {
    throw new OAuthError('auth.privateKey is not a PKCS #8 private key for auth.signingAlgorithm')
  })
  const now = Math.floor(nowMs / 1000)
  const assertion = new SignJWT({ iss: id, sub: id, aud: issuer, jti: randomUUID(), iat: now, exp: now + 60 })
  return {
    client_id: id,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await assertion.setProtectedHeader({ alg }).sign(key),
  }
}

/** The error for a response without a token. Only the error code is quoted: the rest may repeat what we sent. */
function tokenRefusal({ token }: IssuerMetadata, { status, body }: OAuthHttpResponse): OAuthError {
  const code = codeIn((body as { error?: unknown } | null | undefined)?.error)
  const unreachable = status >= 500 || status === 429
  return new OAuthError(`${token.origin} did not issue a token (${code ?? `HTTP ${status}`})`, { code, unreachable })
}

export async function refreshGrant(
  server: ProtectedServer,
  { accessToken: _, expiresAt: __, ...grant }: Grant,
  issuer: IssuerMetadata,
): Promise<Grant> {
  const { refreshToken } = grant
  if (refreshToken === undefined) throw new OAuthError('the grant has expired', { code: 'invalid_grant' })
  // Use the configured client, because its secret may have changed since the sign-in.
  const client = server.client?.id === grant.client.id ? server.client : grant.client
  return requestGrant(server, issuer, client, grant, { grant_type: 'refresh_token', refresh_token: refreshToken })
}

/** Obtains a grant with the client's own credentials. */
export async function obtainGrant(
  server: ProtectedServer,
  found: DiscoveredIssuer,
  demand: AuthDemand,
): Promise<Grant> {
  const { client } = server
  if (!client) throw new OAuthError('auth.clientId is not set')
  const scopes = scopesToAsk(server.settings, found, demand)
  // Do not store the secret; it stays in the configuration.
  const request = { issuer: found.issuer.issuer, resource: found.resource, client: { id: client.id }, scopes }
  const parameters = { grant_type: 'client_credentials', ...scopeParameter(scopes) }
  return requestGrant(server, found.issuer, client, request, parameters)
}

/** The scope that requests a refresh token, if the authorization server supports it and no scopes are configured. */
const offlineScope = 'offline_access'

/**
 * The scopes to request: the configured ones, else those that the server named in its challenge, else all that it
 * supports. A repeated request includes the previous scopes, because the new token would lack them otherwise. Client
 * credentials need no refresh token.
 */
export function scopesToAsk(
  { scopes: configured, grant }: OAuthSettings,
  { issuer, scopes: supported }: DiscoveredIssuer,
  { scopes: challenged, more = [] }: AuthDemand,
): string[] {
  const refreshable = !configured && issuer.scopes.includes(offlineScope) ? [offlineScope] : []
  const scopes = [...new Set([...(configured ?? challenged ?? supported ?? []), ...more, ...refreshable])]
  return grant === 'client_credentials' ? scopes.filter((scope) => scope !== offlineScope) : scopes
}

export const scopeParameter = (scopes: readonly string[]): Record<string, string> =>
  scopes.length > 0 ? { scope: scopes.join(' ') } : {}
