import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../../lib/url.ts'
import { type Challenge, scopesToAsk } from './authorization.ts'
import { type OAuthClient, registerClient } from './client.ts'
import { type DiscoveredIssuer, discoverIssuer, type IssuerMetadata } from './discovery.ts'
import { type AuthDemand, type Grant, type GrantHolder, grantLock } from './grants.ts'
import { codeIn, isClientRejected, isSameSite, OAuthError, quoted } from './oauth-error.ts'
import {
  configuredClient,
  grantFrom,
  type OAuthParts,
  type OAuthSettings,
  onlyIssuer,
  requestTokens,
  scopeParameter,
  signingKey,
  type TokenSet,
} from './tokens.ts'
import { type Reach, reachOf } from './web.ts'

export interface SignIn {
  readonly url: string
  /** The `state` that the authorization response must carry. */
  readonly state: string
  readonly issuer: string
  readonly scopes: readonly string[]
  /** Handles the authorization response and stores the grant. Can be called only once. */
  finish(answer: URLSearchParams): Promise<Grant>
}

export interface BeginSignInOptions extends OAuthParts {
  readonly holder: GrantHolder
  readonly settings: OAuthSettings
  readonly redirect: URL
  /** Fetches the server's challenge; called only if its scopes are not known yet. */
  challenge(): Promise<Challenge | undefined>
}

/** Begins a sign-in: finds the authorization server, and the client to use with it. */
export async function beginSignIn(options: BeginSignInOptions): Promise<SignIn> {
  const { holder, settings, redirect, grants, web, rangeOf } = options
  const server = new URL(holder.url)
  const demand = await grants.demandOf(holder)
  const fresh = demand.scopes ? undefined : await options.challenge()
  const resourceMetadata = fresh?.resourceMetadata ?? demand.resourceMetadata
  const challenge: Challenge = { status: 401, resourceMetadata, scopes: fresh?.scopes }
  const only = onlyIssuer(settings, demand.issuer)
  const configured = settings.issuer
  const found = await discoverIssuer({ server, challenge, only, configured, before: demand.issuer, web, rangeOf })
  const { issuer, resource, scopes: supported } = found
  if (!issuer.authorize) throw new OAuthError(`${quoted(issuer.issuer)} has no authorization endpoint`)
  if (!issuer.pkce) {
    throw new OAuthError(`${quoted(issuer.issuer)} does not support PKCE with S256, without which a code can be stolen`)
  }
  if (settings.issuer !== issuer.issuer) checkPlace(issuer, issuer.authorize)
  const challenged = demand.scopes ?? challenge.scopes
  const known = { configured: settings.scopes, challenged, supported, more: demand.more, offered: issuer.scopes }
  const scopes = scopesToAsk(known)
  const reach = await reachOf(server, rangeOf)
  const client = await clientFor(found, scopes, demand, options, reach).catch(dropRejectedScopes)
  const pkce = createPkce()
  const state = unguessable()
  const url = new URL(issuer.authorize)
  const parameters = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirect.href,
    code_challenge: pkce.challenge,
    code_challenge_method: 'S256',
    state,
    resource,
    ...scopeParameter(scopes),
    // Some authorization servers issue a refresh token only if the user consents again.
    ...(scopes.includes('offline_access') && { prompt: 'consent' }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  let used = false

  return {
    url: url.href,
    state,
    issuer: issuer.issuer,
    scopes,
    async finish(answer) {
      if (used) throw new OAuthError('this sign-in has already finished')
      if (!sameState(answer, state)) throw new OAuthError('the response belongs to another sign-in')
      used = true
      const tokens = await redeemed(answer).catch(async (error) => {
        if (isClientRejected(error)) await grants.unregistered(holder.server, issuer.issuer, client.id)
        return dropRejectedScopes(error)
      })
      const stored = { issuer: issuer.issuer, resource, client, scopes: [...scopes] }
      const grant = grantFrom(tokens, stored, options.clock.now())
      const { more: _, ...met } = demand
      // Without the lock, a renewal of the previous grant that is under way could overwrite this one.
      await using _lock = await options.locks.hold(grantLock(holder, issuer.issuer))
      await grants.granted(holder, grant)
      await grants.demanded(holder, { ...met, issuer: issuer.issuer })
      return grant
    },
  }

  async function redeemed(answer: URLSearchParams): Promise<TokenSet> {
    const parameters = {
      grant_type: 'authorization_code',
      code: codeOf(answer, found),
      redirect_uri: redirect.href,
      code_verifier: pkce.verifier,
      resource,
    }
    return requestTokens({ issuer, client, signing: signingKey(settings), parameters, reach, ...options })
  }

  /** Forgets scopes that the server demanded but the authorization server rejects: no sign-in could succeed. */
  async function dropRejectedScopes(error: unknown): Promise<never> {
    const { more, ...rest } = demand
    if (!more || !(error instanceof OAuthError) || !scopeErrors.has(error.code)) throw error
    await grants.demanded(holder, rest)
    const sentence = `${error.message}. The next sign-in does not request the scopes that a call lacked`
    throw new OAuthError(sentence, { code: error.code, cause: error })
  }
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
    `${quoted(issuer)} uses another site for sign-in, ${authorize.origin}; if that is correct, set auth.issuer to that site`,
  )
}

export const sameState = (answer: URLSearchParams, state: string): boolean => {
  const given = Buffer.from(answer.get('state') ?? '')
  return given.length === state.length && timingSafeEqual(given, Buffer.from(state))
}

/** The code in an authorization response. `iss` is verified first, whenever it is present (RFC 9207). */
function codeOf(answer: URLSearchParams, { issuer }: DiscoveredIssuer): string {
  if (new Set(answer.keys()).size < answer.size) throw new OAuthError('the response has a duplicate parameter')
  const from = answer.get('iss')
  if (from === null && issuer.namesItself)
    throw new OAuthError(`the response does not name its issuer, ${quoted(issuer.issuer)}`)
  if (from !== null && from !== issuer.issuer)
    throw new OAuthError(`the response is from another authorization server, ${quoted(from)}`)
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
  { issuer }: DiscoveredIssuer,
  scopes: readonly string[],
  { more }: AuthDemand,
  { holder, settings, redirect, grants, web, clock }: BeginSignInOptions,
  reach: Reach,
): Promise<OAuthClient> {
  const configured = configuredClient(settings)
  if (configured) return configured
  if (settings.clientMetadata !== undefined && issuer.clientDocuments)
    return { id: settings.clientMetadata, method: 'none' }
  const known = await grants.clientOf(holder.server, issuer.issuer)
  const expired = known?.expiresAt !== undefined && known.expiresAt <= clock.now()
  // A client that Toolway 0.1 registered has no scopes; those that a call lacked are not among its scopes.
  const covers = known?.scopes ? scopes.every((scope) => known.scopes?.includes(scope)) : more === undefined
  if (known && !expired && covers && known.redirects?.includes(redirect.href)) return known
  const { origin } = new URL(issuer.issuer)
  const fresh = await registerClient({ ...issuer, register: issuer.register, origin }, redirect, scopes, { web, reach })
  await grants.registered(holder.server, issuer.issuer, fresh)
  return fresh
}

/** The local port of an earlier registration, to be reused. */
export function knownPort(client: OAuthClient | undefined): number | undefined {
  const loopback = client?.redirects?.map((text) => new URL(text)).find(({ hostname }) => isLoopback(hostname))
  return loopback && Number(loopback.port)
}

/** Creates a proof that the client that asked for the code is the one that redeems it (RFC 7636). */
function createPkce() {
  const verifier = unguessable()
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

const unguessable = (): string => randomBytes(32).toString('base64url')
