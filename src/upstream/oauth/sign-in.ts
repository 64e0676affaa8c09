import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Challenge, scopesToAsk } from './authorization.ts'
import { type OAuthClient, registerClient } from './client.ts'
import { type DiscoveredIssuer, discoverIssuer, type IssuerMetadata } from './discovery.ts'
import type { Grant, GrantHolder } from './grants.ts'
import { codeIn, isLoopback, isSameSite, OAuthError, quoted } from './oauth-error.ts'
import {
  configuredClient,
  grantFrom,
  type OAuthParts,
  type OAuthSettings,
  onlyIssuer,
  requestTokens,
  signingKey,
} from './tokens.ts'
import { type Reach, reachOf } from './web.ts'

/** One person's way through an authorization server. */
export interface SignIn {
  /** Where they have to go. */
  readonly url: string
  /** What the answer must carry. */
  readonly state: string
  readonly issuer: string
  readonly scopes: readonly string[]
  /** Takes the answer that the browser brings along, once, and keeps the grant. */
  finish(answer: URLSearchParams): Promise<Grant>
}

export interface BeginSignInOptions extends OAuthParts {
  readonly holder: GrantHolder
  readonly settings: OAuthSettings
  /** Where the browser is sent back to. */
  readonly redirect: URL
  /** What the server says to who has no credential; asked for where nothing is known of it. */
  challenge(): Promise<Challenge | undefined>
}

/** Begins a sign-in: finds out whom the server trusts, and who we are to them. */
export async function beginSignIn(options: BeginSignInOptions): Promise<SignIn> {
  const { holder, settings, redirect, grants, web, placeOf } = options
  const server = new URL(holder.url)
  const demand = await grants.demandOf(holder)
  const challenge =
    demand.resourceMetadata === undefined && demand.scopes === undefined
      ? await options.challenge()
      : { status: 401, ...(demand.resourceMetadata !== undefined && { resourceMetadata: demand.resourceMetadata }) }
  const only = onlyIssuer(settings, demand.issuer)
  const found = await discoverIssuer({ server, challenge, only, before: demand.issuer, web, placeOf })
  const { issuer, resource, scopes: supported } = found
  if (!issuer.authorize) throw new OAuthError(`${quoted(issuer.issuer)} has no way to sign in`)
  if (!issuer.pkce) {
    throw new OAuthError(`${quoted(issuer.issuer)} does not know PKCE with S256, without which a code can be stolen`)
  }
  if (settings.issuer !== issuer.issuer) checkPlace(issuer, issuer.authorize)
  const scopes = scopesToAsk({
    configured: settings.scopes,
    challenged: demand.scopes ?? challenge?.scopes,
    supported,
    more: demand.more,
    offered: issuer.scopes,
  })
  const reach = await reachOf(server, placeOf)
  const client = await clientFor(found, scopes, options, reach)
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
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    // Without being asked anew some give no refresh token.
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
      if (used) throw new OAuthError('this sign-in was finished before')
      if (!sameState(answer, state)) throw new OAuthError('the answer belongs to another sign-in')
      used = true
      const code = codeOf(answer, found)
      const tokens = await requestTokens({
        issuer,
        client,
        signing: signingKey(settings),
        parameters: {
          grant_type: 'authorization_code',
          code,
          redirect_uri: redirect.href,
          code_verifier: pkce.verifier,
          resource,
        },
        reach,
        ...options,
      })
      const grant = grantFrom(
        tokens,
        { issuer: issuer.issuer, resource, client, scopes: [...scopes] },
        options.clock.now(),
      )
      const { more: _, ...met } = demand
      await grants.granted(holder, grant)
      await grants.demanded(holder, { ...met, issuer: issuer.issuer })
      return grant
    },
  }
}

/**
 * Whoever names somebody else's place to sign in, and their own to bring the code to, is after that code (a mix-up). An
 * issuer that names itself in each answer cannot do that; the others have to keep people at their own place.
 */
function checkPlace({ issuer, token, namesItself }: IssuerMetadata, authorize: URL): void {
  if (namesItself || isSameSite(authorize, new URL(issuer)) || isSameSite(authorize, token)) return
  throw new OAuthError(
    `${quoted(issuer)} lets people sign in at ${authorize.origin}, and wants what they bring back for itself; if that is as it should be, set auth.issuer to it`,
  )
}

/** Whether an answer is to this sign-in and no other. */
export const sameState = (answer: URLSearchParams, state: string): boolean => {
  const given = Buffer.from(answer.get('state') ?? '')
  return given.length === state.length && timingSafeEqual(given, Buffer.from(state))
}

/**
 * The code of an answer, where the answer is from the issuer that was asked (RFC 9207): compared as it stands, also
 * where the issuer never promised to name itself, and before anything else in it is believed.
 */
function codeOf(answer: URLSearchParams, { issuer }: DiscoveredIssuer): string {
  if (new Set(answer.keys()).size < answer.size) throw new OAuthError('the answer says something twice')
  const from = answer.get('iss')
  if (from === null && issuer.namesItself) {
    throw new OAuthError(`the answer does not say that it is from ${quoted(issuer.issuer)}, as it must`)
  }
  if (from !== null && from !== issuer.issuer) {
    throw new OAuthError(`the answer is from another authorization server than the one that was asked, ${quoted(from)}`)
  }
  if (answer.has('error')) {
    const code = codeIn(answer.get('error'))
    throw new OAuthError(`the authorization server refused${code ? ` (${code})` : ''}`, { code })
  }
  const code = answer.get('code')
  if (code === null || code === '') throw new OAuthError('the answer has no code')
  return code
}

/**
 * Who we are: the client of the configuration; else the document that describes us, where the issuer reads such; else
 * one that is registered with this issuer, and used for no other.
 */
async function clientFor(
  { issuer }: DiscoveredIssuer,
  scopes: readonly string[],
  { holder, settings, redirect, grants, web, clock }: BeginSignInOptions,
  reach: Reach,
): Promise<OAuthClient> {
  const configured = configuredClient(settings)
  if (configured) return configured
  if (settings.clientMetadata !== undefined && issuer.clientDocuments) {
    return { id: settings.clientMetadata, method: 'none' }
  }
  const known = await grants.clientOf(holder.server, issuer.issuer)
  const expired = known?.expiresAt !== undefined && known.expiresAt <= clock.now()
  if (known && !expired && known.redirects?.includes(redirect.href)) return known
  const { origin } = new URL(issuer.issuer)
  const fresh = await registerClient({ ...issuer, register: issuer.register, origin }, redirect, scopes, { web, reach })
  await grants.registered(holder.server, issuer.issuer, fresh)
  return fresh
}

/** The port of this machine that an earlier registration named, so that it can be used again. */
export function knownPort(client: OAuthClient | undefined): number | undefined {
  const loopback = client?.redirects?.map((text) => new URL(text)).find(isLoopback)
  return loopback && Number(loopback.port)
}

/** Proof that whoever brings the code is whoever asked for it (RFC 7636). */
interface Pkce {
  readonly verifier: string
  readonly challenge: string
}

function createPkce(): Pkce {
  const verifier = unguessable()
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** 256 random bits, as may stand in an address. */
const unguessable = (): string => randomBytes(32).toString('base64url')
