import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Locks } from '../../core/stores.ts'
import { basicAuth } from '../../lib/url.ts'
import { scopesForClientCredentials, scopesIn } from './authorization.ts'
import { methodOf, type OAuthClient, type SigningKey } from './client.ts'
import type { DiscoveredIssuer, IssuerMetadata } from './discovery.ts'
import type { AuthDemand, Grant, Grants } from './grants.ts'
import { codeIn, isClientRejected, OAuthError } from './oauth-error.ts'
import { type AddressRangeOf, type OAuthHttp, type Reach, reachOf } from './web.ts'

const answered = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,16384}$/),
  token_type: z.string(),
  expires_in: z.coerce.number().nonnegative().optional(),
  refresh_token: z.string().min(1).optional(),
  scope: z.string().optional(),
})

const maxSeconds = 10 * 365 * 24 * 3_600

/** The tokens in a response. The expiry is in milliseconds since the epoch; `scopes` is absent if all were granted. */
export interface TokenSet extends Pick<Grant, 'accessToken' | 'expiresAt' | 'refreshToken'> {
  readonly scopes?: readonly string[]
}

export interface TokenRequest {
  readonly issuer: IssuerMetadata
  readonly client: OAuthClient
  readonly signing?: SigningKey | undefined
  /** The `grant_type` and its parameters. */
  readonly parameters: Readonly<Record<string, string>>
  readonly web: OAuthHttp
  readonly reach: Reach
  readonly clock: Clock
}

/** Sends a request to the token endpoint. The client authenticates only to the issuer that it is registered with. */
export async function requestTokens(request: TokenRequest): Promise<TokenSet> {
  const { issuer, web, reach, clock } = request
  const { headers, parameters } = await authenticated(request)
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const post = (shown: Shown['parameters']) => {
    const body = new URLSearchParams({ ...request.parameters, ...shown }).toString()
    return web.post(issuer.token, reach, { body, headers: { ...type, ...headers } })
  }
  const asked = clock.now()
  let answer = await post(parameters)
  // The authorization server of the Python SDK requires client_id in the body, too; Okta's refuses a request that has both.
  if (headers.authorization !== undefined && answer.status !== 200 && isClientRejected(refusal(issuer, answer)))
    answer = await post({ client_id: request.client.id })
  if (answer.status !== 200) throw refusal(issuer, answer)
  const parsed = answered.safeParse(answer.body)
  if (!parsed.success) throw new OAuthError(`${issuer.token.origin} did not return a valid token`)
  const { access_token, token_type, expires_in, refresh_token, scope } = parsed.data
  if (token_type.toLowerCase() !== 'bearer') {
    const kind = codeIn(token_type)
    throw new OAuthError(`${issuer.token.origin} issues tokens of an unsupported type${kind ? `, ${kind}` : ''}`)
  }
  return {
    accessToken: access_token,
    ...(expires_in !== undefined && { expiresAt: asked + Math.min(expires_in, maxSeconds) * 1000 }),
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(scope !== undefined && { scopes: scopesIn(scope) }),
  }
}

type Shown = Readonly<Record<'headers' | 'parameters', Readonly<Record<string, string>>>>

async function authenticated(request: TokenRequest): Promise<Shown> {
  const { client, signing, issuer } = request
  if (signing) return { headers: {}, parameters: await assertion(request, signing) }
  const { id, secret = '' } = client
  switch (methodOf(client, issuer)) {
    case 'client_secret_basic': {
      const [user = '', password = ''] = [id, secret].map((part) =>
        new URLSearchParams([['', part]]).toString().slice(1),
      )
      return { headers: { authorization: basicAuth(user, password) }, parameters: {} }
    }
    case 'client_secret_post':
      return { headers: {}, parameters: { client_id: id, client_secret: secret } }
    default:
      return { headers: {}, parameters: { client_id: id } }
  }
}

/** A signed assertion that authenticates the client to this issuer only, and is valid for a minute. */
async function assertion({ client, issuer, clock }: TokenRequest, signing: SigningKey) {
  const { importPKCS8, SignJWT } = await import('jose')
  const key = await importPKCS8(signing.key, signing.algorithm).catch(() => {
    throw new OAuthError('auth.privateKey is not a PKCS #8 private key for auth.signingAlgorithm')
  })
  const now = Math.floor(clock.now() / 1000)
  const signed = await new SignJWT()
    .setProtectedHeader({ alg: signing.algorithm })
    .setIssuer(client.id)
    .setSubject(client.id)
    .setAudience(issuer.issuer)
    .setJti(randomUUID())
    .setIssuedAt(now)
    .setExpirationTime(now + 60)
    .sign(key)
  return {
    client_id: client.id,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: signed,
  }
}

/** The error for a response without a token. Only the error code is quoted: the rest may repeat what we sent. */
function refusal({ token }: IssuerMetadata, { status, body }: Awaited<ReturnType<OAuthHttp['post']>>): OAuthError {
  const code = codeIn((body as { error?: unknown } | null | undefined)?.error)
  const unreachable = status >= 500 || status === 429
  return new OAuthError(`${token.origin} did not issue a token (${code ?? `HTTP ${status}`})`, { code, unreachable })
}

export function grantFrom(
  tokens: TokenSet,
  rest: Omit<Grant, keyof TokenSet | 'grantedAt'> & { scopes: readonly string[] },
  now: number,
): Grant {
  const { scopes: asked, ...kept } = rest
  return { ...kept, ...tokens, scopes: [...(tokens.scopes ?? asked)], grantedAt: now }
}

/** Renews a grant. If the response has a new refresh token, it replaces the old one, which may be invalid by now. */
export async function refreshGrant(
  { accessToken: _, expiresAt: __, ...grant }: Grant,
  issuer: IssuerMetadata,
  settings: OAuthSettings,
  parts: OAuthParts,
  reach: Reach,
): Promise<Grant> {
  if (grant.refreshToken === undefined) throw new OAuthError('the grant has expired', { code: 'invalid_grant' })
  const configured = configuredClient(settings)
  const tokens = await requestTokens({
    issuer,
    // Use the configured client, because its secret may have changed since the sign-in.
    client: configured?.id === grant.client.id ? configured : grant.client,
    signing: signingKey(settings),
    parameters: { grant_type: 'refresh_token', refresh_token: grant.refreshToken, resource: grant.resource },
    reach,
    ...parts,
  })
  return grantFrom(tokens, grant, parts.clock.now())
}

export async function obtainGrant(
  { issuer, resource, scopes: supported }: DiscoveredIssuer,
  demand: AuthDemand,
  settings: OAuthSettings,
  parts: OAuthParts,
  server: URL,
): Promise<Grant> {
  const client = configuredClient(settings)
  if (!client) throw new OAuthError('auth.clientId is not set')
  const { more, scopes: challenged } = demand
  const configured = settings.scopes
  const scopes = scopesForClientCredentials({ configured, challenged, supported, more, offered: issuer.scopes })
  const tokens = await requestTokens({
    issuer,
    client,
    signing: signingKey(settings),
    parameters: { grant_type: 'client_credentials', resource, ...scopeParameter(scopes) },
    reach: await reachOf(server, parts.rangeOf),
    ...parts,
  })
  // Do not store the secret; it stays in the configuration.
  const stored = { issuer: issuer.issuer, resource, client: { id: client.id }, scopes: [...scopesIn(scopes.join(' '))] }
  return grantFrom(tokens, stored, parts.clock.now())
}

export const scopeParameter = (scopes: readonly string[]): Record<string, string> =>
  scopes.length > 0 ? { scope: scopes.join(' ') } : {}

export type OAuthSettings = Extract<Extract<ServerConfig, { url: string }>['auth'], { type: 'oauth' }>

export interface OAuthParts {
  readonly grants: Grants
  readonly locks: Locks
  readonly web: OAuthHttp
  readonly rangeOf: AddressRangeOf
  readonly clock: Clock
}

export const configuredClient = ({ clientId: id, clientSecret: secret }: OAuthSettings): OAuthClient | undefined =>
  id === undefined ? undefined : { id, secret }

export const signingKey = ({ privateKey: key, signingAlgorithm: algorithm }: OAuthSettings): SigningKey | undefined =>
  key === undefined ? undefined : { key, algorithm }

/**
 * The only issuer that a configured client may be used with: the configured issuer, else the first one that was used. A
 * server can name any authorization server, so other issuers must not receive the client's secret.
 */
export const onlyIssuer = ({ issuer, clientId }: OAuthSettings, first: string | undefined): string | undefined =>
  issuer ?? (clientId === undefined ? undefined : first)
