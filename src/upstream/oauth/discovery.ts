import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { configuredHeaders, discardBody } from '../transports/http-channel.ts'
import { Http1Channel } from '../transports/http1/channel.ts'
import { type Challenge, readChallenge, scopesIn } from './authorization.ts'
import type { ProtectedServer } from './grants.ts'
import { OAuthError, type OAuthHttp, parseProtectedUrl, quoteAddress, type Reach, unreachableError } from './web.ts'

/** The authorization server for an MCP server, and what to request from it. */
export interface DiscoveredIssuer {
  /** The identifier of the MCP server. Tokens are requested for it (RFC 8707). */
  readonly resource: string
  readonly scopes?: readonly string[]
  readonly issuer: IssuerMetadata
}

/**
 * Finds a server's authorization server. `before` is the issuer of the current grant, which is preferred as long as the
 * server still names it.
 */
export async function discoverIssuer(
  server: ProtectedServer,
  before: string | undefined,
  challenge: Challenge | undefined,
): Promise<DiscoveredIssuer> {
  const { web } = server.parts
  const reach = await server.reach()
  const { resource, issuers, scopes } = await resourceMetadata(server.url, challenge, { web, reach })
  const only = server.onlyIssuer(before)
  const issuer = chooseIssuer(issuers ?? [server.settings.issuer ?? server.url.origin], only, before)
  return { resource, scopes, issuer: await issuerMetadata(issuer, web, reach) }
}

function chooseIssuer(issuers: readonly string[], only: string | undefined, before: string | undefined): string {
  if (only !== undefined && !issuers.some((issuer) => isSameButSlash(issuer, only))) {
    const registered = `the client is registered with ${quoteAddress(only)} instead`
    throw new OAuthError(`no request was sent to its authorization server, ${quoteAddress(issuers[0])}: ${registered}`)
  }
  return only ?? issuers.find((issuer) => issuer === before) ?? (issuers[0] as string)
}

/** Whether two issuers differ in a trailing slash at most: some servers add one when they name their issuer. */
const isSameButSlash = (one: string, other: string): boolean => one.replace(/\/$/, '') === other.replace(/\/$/, '')

const textArray = z.array(z.string())

const publishedIssuer = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string(),
  registration_endpoint: z.string().optional(),
  scopes_supported: textArray.optional(),
  code_challenge_methods_supported: textArray.optional(),
  token_endpoint_auth_methods_supported: textArray.optional(),
  client_id_metadata_document_supported: z.boolean().optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})

/** An authorization server's metadata (RFC 8414, or OpenID Connect discovery). */
export type IssuerMetadata = ReturnType<typeof readIssuer>

/** Fetches an issuer's metadata, and verifies that it names exactly this issuer. */
export async function issuerMetadata(issuer: string, web: OAuthHttp, reach: Reach): Promise<IssuerMetadata> {
  const at = parseProtectedUrl(issuer, 'its issuer')
  if (at.search !== '' || at.hash !== '') throw new OAuthError(`invalid issuer ${quoteAddress(issuer)}`)
  for (const place of issuerPlaces(at)) {
    const { status, body } = await web.get(place, reach)
    if (status >= 400 && status < 500) continue
    if (status !== 200) throw new OAuthError(`${at.origin} is unavailable (HTTP ${status})`, { unreachable: true })
    return readIssuer(body, issuer, at)
  }
  throw new OAuthError(`${quoteAddress(issuer)} publishes no authorization server metadata`)
}

/** The possible URLs of an issuer's metadata. The well-known part precedes the path; OpenID Connect also appends it. */
function issuerPlaces({ origin, pathname }: URL): URL[] {
  const path = pathname.replace(/\/$/, '')
  const oauth = '/.well-known/oauth-authorization-server'
  const openId = '/.well-known/openid-configuration'
  const paths = path === '' ? [oauth, openId] : [`${oauth}${path}`, `${openId}${path}`, `${path}${openId}`]
  return paths.map((place) => new URL(place, origin))
}

function readIssuer(body: unknown, issuer: string, { origin, protocol }: URL) {
  const parsed = publishedIssuer.safeParse(body)
  if (!parsed.success) throw new OAuthError(`${origin} publishes invalid authorization server metadata`)
  const found = parsed.data
  if (found.issuer !== issuer) {
    const advice = isSameButSlash(found.issuer, issuer) ? `; if that is correct, set auth.issuer to it` : ''
    throw new OAuthError(
      `the metadata for ${quoteAddress(issuer)} names another issuer, ${quoteAddress(found.issuer)}${advice}`,
    )
  }
  const endpoint = (address: string, what: string): URL => {
    const url = parseProtectedUrl(address, `its ${what}`)
    // An https issuer must not name http endpoints, which can only be on this machine.
    if (protocol === 'https:' && url.protocol !== 'https:') throw new OAuthError(`its ${what} does not use https`)
    return url
  }
  const optional = (address: string | undefined, what: string) =>
    address === undefined ? undefined : endpoint(address, what)
  return {
    issuer,
    authorize: optional(found.authorization_endpoint, 'authorization endpoint'),
    token: endpoint(found.token_endpoint, 'token endpoint'),
    register: optional(found.registration_endpoint, 'registration endpoint'),
    scopes: found.scopes_supported ?? [],
    pkce: found.code_challenge_methods_supported?.includes('S256') ?? false,
    // The default according to RFC 8414.
    authMethods: found.token_endpoint_auth_methods_supported ?? ['client_secret_basic'],
    clientDocuments: found.client_id_metadata_document_supported ?? false,
    /** Whether the issuer sends `iss` in each authorization response. */
    namesItself: found.authorization_response_iss_parameter_supported ?? false,
  }
}

const publishedResource = z.looseObject({
  resource: z.string(),
  authorization_servers: textArray.min(1),
  scopes_supported: textArray.optional(),
})

/** A protected resource's metadata (RFC 9728). Tokens are requested for its identifier exactly as published. */
interface ResourceMetadata extends Omit<DiscoveredIssuer, 'issuer'> {
  readonly issuers?: readonly string[]
}

const resourceWellKnown = '/.well-known/oauth-protected-resource'

/**
 * Finds a server's metadata: at the URL in its challenge, else at its path, else at its root. If there is no metadata
 * and no issuer is configured, the server is assumed to follow the first protocol revision with authorization, in which
 * an MCP server is its own authorization server.
 */
async function resourceMetadata(
  server: URL,
  challenge: Challenge | undefined,
  { web, reach }: { readonly web: OAuthHttp; readonly reach: Reach },
): Promise<ResourceMetadata> {
  for (const place of resourcePlaces(server, challenge?.resourceMetadata)) {
    const { status, body } = await web.get(place, reach)
    const where = `its metadata at ${place.origin}${place.pathname}`
    if (status !== 200) {
      if (challenge?.resourceMetadata === undefined && status >= 400 && status < 500) continue
      throw new OAuthError(`${where} could not be fetched (HTTP ${status})`)
    }
    const parsed = publishedResource.safeParse(body)
    if (!parsed.success) throw new OAuthError(`${where} is not valid resource metadata`)
    const { resource, authorization_servers: issuers, scopes_supported: scopes } = parsed.data
    const misuse = `its metadata is for another resource, ${quoteAddress(resource)}, which could misuse the token`
    if (!isFor(resource, server)) throw new OAuthError(misuse)
    return { resource, issuers, scopes: scopes && scopesIn(scopes.join(' ')) }
  }
  return { resource: `${server.origin}${server.pathname === '/' ? '' : server.pathname}` }
}

function resourcePlaces(server: URL, named: string | undefined): URL[] {
  if (named !== undefined) {
    const place = parseProtectedUrl(named, 'its metadata URL')
    // A server must not refer us to other origins.
    if (place.origin !== server.origin) throw new OAuthError(`its metadata is at another origin, ${place.origin}`)
    return [place]
  }
  const path = server.pathname.replace(/\/$/, '')
  const paths = path === '' ? [resourceWellKnown] : [`${resourceWellKnown}${path}`, resourceWellKnown]
  return paths.map((at) => new URL(at, server.origin))
}

/** Whether the resource is the server itself, or a parent of it, comparing whole path components. */
function isFor(resource: string, server: URL): boolean {
  if (!/^[\x21-\x7e]+$/.test(resource) || !URL.canParse(resource)) return false
  const { origin, pathname, hash, search } = new URL(resource)
  if (origin !== server.origin || hash !== '' || (search !== '' && search !== server.search)) return false
  const whole = (path: string) => (path.endsWith('/') ? path : `${path}/`)
  return whole(server.pathname).startsWith(whole(pathname))
}

const probeWithinMs = 10_000

/** A request that every server answers. A server that requires a sign-in rejects it before reading it. */
const greeting = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'toolway', version: '0' } },
}

/** Gets a server's challenge by sending a request without a credential; undefined if the server requires none. */
export async function challengeOf(
  server: URL,
  given: Readonly<Record<string, string>>,
  kind: 'http' | 'sse',
  clock: Clock,
): Promise<Challenge | undefined> {
  await using channel = new Http1Channel(server.origin, clock)
  const slow = `${server.origin} did not answer within ${probeWithinMs / 1000} s (a fixed limit)`
  using limit = deadline(clock, probeWithinMs, () => new OAuthError(slow, { unreachable: true }))
  const { authorization: _, ...configured } = configuredHeaders(server, given)
  const path = server.pathname + server.search
  const get = { method: 'GET', path, headers: { ...configured, accept: 'text/event-stream' } } as const
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const body = Buffer.from(JSON.stringify(greeting))
  const post = { method: 'POST', path, headers: { ...configured, ...headers }, body } as const
  const request = { ...(kind === 'http' ? post : get), signal: limit.signal }
  try {
    const head = await channel.request(request, (head) => discardBody(head, clock))
    head.abort()
    const { status } = head
    return status === 401 || status === 403 ? readChallenge(status, head.all('www-authenticate')) : undefined
  } catch (cause) {
    throw cause instanceof OAuthError ? cause : unreachableError(server, cause)
  }
}
