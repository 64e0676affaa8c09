import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { isLoopback } from '../../lib/url.ts'
import type { Challenge } from './authorization.ts'
import { type DiscoveredIssuer, discoverIssuer, type IssuerMetadata } from './discovery.ts'
import { type AuthDemand, type Grant, grantLock, type OAuthClient, type ProtectedServer } from './grants.ts'
import { preferredAuthMethods, requestGrant, scopeParameter, scopesToAsk } from './tokens.ts'
import { codeIn, isClientRejected, isSameSite, OAuthError, quoteAddress } from './web.ts'

/**
 * Begins a sign-in: finds the authorization server, and the client to use with it. `askChallenge` fetches the server's
 * challenge, and is called only if its scopes are not known yet.
 */
export async function beginSignIn(
  server: ProtectedServer,
  redirect: URL,
  askChallenge: () => Promise<Challenge | undefined>,
): Promise<SignIn> {
  const { settings } = server
  const demand = await server.parts.grants.demandOf(server.holder)
  const fresh = demand.scopes ? undefined : await askChallenge()
  const resourceMetadata = fresh?.resourceMetadata ?? demand.resourceMetadata
  const found = await discoverIssuer(server, demand.issuer, { status: 401, resourceMetadata })
  const { issuer } = found
  if (!issuer.authorize) throw new OAuthError(`${quoteAddress(issuer.issuer)} has no authorization endpoint`)
  if (!issuer.pkce) {
    throw new OAuthError(
      `${quoteAddress(issuer.issuer)} does not support PKCE with S256, without which a code can be stolen`,
    )
  }
  if (settings.issuer !== issuer.issuer) checkPlace(issuer, issuer.authorize)
  const challenged = demand.scopes ?? fresh?.scopes?.slice()
  const scopes = scopesToAsk(settings, found, { ...demand, scopes: challenged })
  const client = await clientFor(server, found, scopes, redirect, demand).catch((error) =>
    dropRejectedScopes(server, demand, error),
  )
  return new SignIn(server, found, { client, scopes, redirect, demand })
}

interface SignInRequest {
  readonly client: OAuthClient
  readonly scopes: readonly string[]
  readonly redirect: URL
  readonly demand: AuthDemand
}

/** A sign-in that waits for its authorization response, with PKCE (RFC 7636). */
export class SignIn {
  readonly state = unguessable()
  readonly url: string
  readonly #server: ProtectedServer
  readonly #found: DiscoveredIssuer
  readonly #request: SignInRequest
  readonly #verifier = unguessable()
  #isFinished = false

  constructor(server: ProtectedServer, found: DiscoveredIssuer, request: SignInRequest) {
    this.#server = server
    this.#found = found
    this.#request = request
    const { client, scopes, redirect } = request
    const url = new URL(found.issuer.authorize as URL)
    const parameters = {
      response_type: 'code',
      client_id: client.id,
      redirect_uri: redirect.href,
      code_challenge: createHash('sha256').update(this.#verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: this.state,
      resource: found.resource,
      ...scopeParameter(scopes),
      // Some authorization servers issue a refresh token only if the user consents again.
      ...(scopes.includes('offline_access') && { prompt: 'consent' }),
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    this.url = url.href
  }

  get issuer(): string {
    return this.#found.issuer.issuer
  }

  get scopes(): readonly string[] {
    return this.#request.scopes
  }

  /** Handles the authorization response and stores the grant. Can be called only once. */
  async finish(answer: URLSearchParams): Promise<Grant> {
    if (this.#isFinished) throw new OAuthError('this sign-in has already finished')
    if (!sameState(answer, this.state)) throw new OAuthError('the response belongs to another sign-in')
    this.#isFinished = true
    const { client, demand } = this.#request
    const { issuer } = this.#found.issuer
    const { holder, parts } = this.#server
    const { grants, locks } = parts
    const grant = await this.#redeem(answer).catch(async (error) => {
      if (isClientRejected(error)) await grants.unregistered(holder.server, issuer, client.id)
      return dropRejectedScopes(this.#server, demand, error)
    })
    const { more: _, ...met } = demand
    // Without the lock, a renewal of the previous grant that is under way could overwrite this one.
    await using _lock = await locks.hold(grantLock(holder, issuer))
    await grants.granted(holder, grant)
    await grants.demanded(holder, { ...met, issuer })
    return grant
  }

  async #redeem(answer: URLSearchParams): Promise<Grant> {
    const { client, scopes, redirect } = this.#request
    const { issuer, resource } = this.#found
    const request = { issuer: issuer.issuer, resource, client, scopes: [...scopes] }
    return requestGrant(this.#server, issuer, client, request, {
      grant_type: 'authorization_code',
      code: authorizationCode(answer, issuer),
      redirect_uri: redirect.href,
      code_verifier: this.#verifier,
    })
  }
}

/** Forgets scopes that the server demanded but the authorization server rejects: no sign-in could succeed. */
async function dropRejectedScopes(
  { holder, parts }: ProtectedServer,
  demand: AuthDemand,
  error: unknown,
): Promise<never> {
  const { more, ...rest } = demand
  if (!more || !(error instanceof OAuthError) || !scopeErrors.has(error.code)) throw error
  await parts.grants.demanded(holder, rest)
  const sentence = `${error.message}. The next sign-in does not request the scopes that a call lacked`
  throw new OAuthError(sentence, { code: error.code, cause: error })
}

/** Errors of authorization servers that do not grant, or register a client for, the requested scopes. */
const scopeErrors: ReadonlySet<string | undefined> = new Set(['invalid_scope', 'invalid_client_metadata'])

/**
 * Prevents mix-up attacks, in which an issuer names another issuer's authorization endpoint and its own token endpoint
 * in order to get the code. An issuer that sends `iss` cannot do that. Any other issuer must have its authorization
 * endpoint on the same site as its own address or its token endpoint.
 */
function checkPlace({ issuer, token, namesItself }: IssuerMetadata, authorize: URL): void {
  if (namesItself || isSameSite(authorize, new URL(issuer)) || isSameSite(authorize, token)) return
  throw new OAuthError(
    `${quoteAddress(issuer)} uses another site for sign-in, ${authorize.origin}; if that is correct, set auth.issuer to that site`,
  )
}

export const sameState = (answer: URLSearchParams, state: string): boolean => {
  const given = Buffer.from(answer.get('state') ?? '')
  return given.length === state.length && timingSafeEqual(given, Buffer.from(state))
}

/** The code in an authorization response. `iss` is verified first, whenever it is present (RFC 9207). */
function authorizationCode(answer: URLSearchParams, issuer: IssuerMetadata): string {
  if (new Set(answer.keys()).size < answer.size) throw new OAuthError('the response has a duplicate parameter')
  const from = answer.get('iss')
  if (from === null && issuer.namesItself)
    throw new OAuthError(`the response does not name its issuer, ${quoteAddress(issuer.issuer)}`)
  if (from !== null && from !== issuer.issuer)
    throw new OAuthError(`the response is from another authorization server, ${quoteAddress(from)}`)
  if (answer.has('error')) {
    const code = codeIn(answer.get('error'))
    throw new OAuthError(`the authorization server rejected the sign-in${code ? ` (${code})` : ''}`, { code })
  }
  const code = answer.get('code')
  if (code === null || code === '') throw new OAuthError('the response has no code')
  return code
}

/** The configured client, else our metadata document if the issuer supports it, else one registered with the issuer. */
async function clientFor(
  server: ProtectedServer,
  { issuer }: DiscoveredIssuer,
  scopes: readonly string[],
  redirect: URL,
  { more }: AuthDemand,
): Promise<OAuthClient> {
  const { holder, settings } = server
  const { grants, clock } = server.parts
  if (server.client) return server.client
  if (settings.clientMetadata !== undefined && issuer.clientDocuments)
    return { id: settings.clientMetadata, method: 'none' }
  const known = await grants.clientOf(holder.server, issuer.issuer)
  const expired = known?.expiresAt !== undefined && known.expiresAt <= clock.now()
  // A client that Toolway 0.1 registered has no scopes; those that a call lacked are not among its scopes.
  const covers = known?.scopes ? scopes.every((scope) => known.scopes?.includes(scope)) : more === undefined
  if (known && !expired && covers && known.redirects?.includes(redirect.href)) return known
  const fresh = await registerClient(issuer, redirect, scopes, server)
  await grants.registered(holder.server, issuer.issuer, fresh)
  return fresh
}

const registrationSchema = z.object({
  client_id: z.string().min(1),
  client_secret: z.string().optional(),
  client_secret_expires_at: z.number().optional(),
  token_endpoint_auth_method: z.string().optional(),
})

/** Registers a client (RFC 7591): as a web application if the redirect is https, otherwise as a native application. */
async function registerClient(
  { issuer, register, authMethods }: IssuerMetadata,
  redirect: URL,
  scopes: readonly string[],
  server: ProtectedServer,
): Promise<OAuthClient> {
  const { origin } = new URL(issuer)
  const advice = 'register a client there, and set auth.clientId'
  if (!register) throw new OAuthError(`${origin} does not support client registration: ${advice}`)
  // Prefer a client without a secret: a program on a person's machine cannot keep a secret from that person.
  const method = authMethods.includes('none') ? 'none' : preferredAuthMethods.find((one) => authMethods.includes(one))
  const body = JSON.stringify({
    client_name: 'Toolway',
    redirect_uris: [redirect.href],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: redirect.protocol === 'https:' ? 'web' : 'native',
    token_endpoint_auth_method: method,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
  })
  const headers = { 'content-type': 'application/json' }
  const answer = await server.parts.web.post(register, await server.reach(), { body, headers })
  const parsed = registrationSchema.safeParse(answer.body)
  if (answer.status >= 300 || !parsed.success) {
    const code = codeIn((answer.body as { error?: unknown } | null | undefined)?.error)
    const why = code ?? `HTTP ${answer.status}`
    throw new OAuthError(`${origin} rejected the client registration (${why}): ${advice}`, { code })
  }
  const { client_id: id, client_secret: secret, client_secret_expires_at: ends = 0 } = parsed.data
  return {
    id,
    redirects: [redirect.href],
    scopes: [...scopes],
    secret,
    method: parsed.data.token_endpoint_auth_method ?? (secret === undefined ? 'none' : undefined),
    expiresAt: ends > 0 ? ends * 1000 : undefined,
  }
}

/** The local port of an earlier registration, to be reused. */
export function knownPort(client: OAuthClient | undefined): number | undefined {
  const loopback = client?.redirects?.map((text) => new URL(text)).find(({ hostname }) => isLoopback(hostname))
  return loopback && Number(loopback.port)
}

const unguessable = (): string => randomBytes(32).toString('base64url')
