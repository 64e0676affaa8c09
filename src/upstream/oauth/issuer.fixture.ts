import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** How an authorization server behaves; tests change it while it runs. */
export interface Behaviour {
  /** The issuer in its metadata, if that should be wrong. */
  issuer?: string
  /** The host in its URL; 127.0.0.1 if omitted. */
  host?: string
  /** Asks for consent on a page. By default consent is implied. */
  asksForConsent?: boolean
  /** The `iss` in its responses; null omits it. */
  iss?: string | null
  metadata?: Record<string, unknown>
  /** Handles every request for metadata. */
  answerMetadata?(response: ServerResponse): void
  /** Handles every registration. */
  answerRegistration?(response: ServerResponse): void
  /** Handles every request for a token. */
  answerToken?(response: ServerResponse, asked: Readonly<Record<string, string>>): void
  /** Scopes that are never granted. */
  unknownScopes?: readonly string[]
  expiresIn?: number
  /** Refuses every refresh with this error. */
  refuseRefresh?: { status: number; error: string }
  rotates: boolean
  /** Creates access tokens, instead of random names. */
  accessToken?(granted: { readonly scope: string; readonly resource: string }): Promise<string>
}

export interface TestIssuer extends AsyncDisposable {
  readonly url: string
  readonly behaviour: Behaviour
  /** The bodies of token requests in order, each with its Authorization header. */
  readonly tokenRequests: (Record<string, string> & { authorization?: string })[]
  readonly registrations: Record<string, unknown>[]
  /** Every path that was requested. */
  readonly asked: string[]
  /** Whether this issuer issued an access token, and for these scopes. */
  accepts(token: string, scopes?: readonly string[]): boolean
  /** Revokes all access tokens; refresh tokens stay valid. */
  revoke(): void
  /** How often a refresh token was used twice. Each time, all tokens of the same sign-in are revoked. */
  readonly reused: number
  /** The redirect parameters after a person has consented at this URL. */
  visit(url: string): Promise<URLSearchParams>
}

interface Granted {
  readonly resource: string
  readonly scope: string
}

interface Code extends Granted {
  readonly challenge: string
  readonly redirect: string
  readonly client: string
}

/** An authorization server that enforces PKCE, and single use of codes and refresh tokens. */
export async function startIssuer(changes: Partial<Behaviour> = {}): Promise<TestIssuer> {
  const behaviour: Behaviour = { rotates: true, ...changes }
  const codes = new Map<string, Code>()
  const refreshTokens = new Map<string, Granted>()
  const accessTokens = new Map<string, readonly string[]>()
  /** For each token, all tokens of the same sign-in, which are revoked together. */
  const families = new Map<string, Set<string>>()
  let reused = 0
  const tokenRequests: TestIssuer['tokenRequests'] = []
  const registrations: Record<string, unknown>[] = []
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    asked.push(pathname)
    if (pathname.includes('/.well-known/')) return (behaviour.answerMetadata ?? metadata)(response)
    if (pathname === '/authorize' && behaviour.asksForConsent) return consent(searchParams, response)
    if (pathname === '/authorize' || pathname === '/allow') return authorize(searchParams, response)
    if (pathname === '/deny') return deny(searchParams, response)
    if (pathname === '/register') return register(JSON.parse(await text(request)), response)
    if (pathname === '/token') return token(request, response)
    json(response, 404, {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://${behaviour.host ?? '127.0.0.1'}:${(server.address() as AddressInfo).port}`

  function metadata(response: ServerResponse): void {
    json(response, 200, {
      issuer: behaviour.issuer ?? url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      authorization_response_iss_parameter_supported: true,
      ...behaviour.metadata,
    })
  }

  /** A page without scripts, on which a registered client is named. */
  function consent(given: URLSearchParams, response: ServerResponse): void {
    const client = registrations.find((_, index) => given.get('client_id') === `client-${index + 1}`)
    const isOwnRedirect = (client?.redirect_uris as string[] | undefined)?.includes(given.get('redirect_uri') ?? '')
    if (!isOwnRedirect) {
      json(response, 400, { error: 'invalid_request' })
      return
    }
    const fields = [...given].map(([name, value]) => `<input type="hidden" name="${name}" value="${attribute(value)}">`)
    const buttons = '<button formaction="/allow">Allow</button> <button formaction="/deny">Deny</button>'
    const title = `Allow ${attribute(String(client?.client_name))}?`
    const body = `<main><h1>${title}</h1><form>${fields.join('')}${buttons}</form></main>`
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      .end(`<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>${body}</html>`)
  }

  function deny(given: URLSearchParams, response: ServerResponse, error = 'access_denied'): void {
    const redirect = new URL(given.get('redirect_uri') ?? '')
    const parameters = { error, state: given.get('state') ?? '', iss: url }
    for (const [name, value] of Object.entries(parameters)) redirect.searchParams.set(name, value)
    response.writeHead(302, { location: redirect.href }).end()
  }

  function authorize(given: URLSearchParams, response: ServerResponse): void {
    const code = randomUUID()
    const redirect = new URL(given.get('redirect_uri') ?? '')
    // Like Keycloak, grants a registered client only the scopes that it was registered for.
    const registered = registrations[Number(given.get('client_id')?.replace('client-', '')) - 1]?.scope
    const allowed = typeof registered === 'string' ? registered.split(' ') : undefined
    const requested = given.get('scope')?.split(' ') ?? []
    const refused = behaviour.unknownScopes ?? []
    if (requested.some((scope) => refused.includes(scope) || allowed?.includes(scope) === false)) {
      deny(given, response, 'invalid_scope')
      return
    }
    codes.set(code, {
      challenge: given.get('code_challenge') ?? '',
      redirect: redirect.href,
      client: given.get('client_id') ?? '',
      resource: given.get('resource') ?? '',
      scope: given.get('scope') ?? '',
    })
    redirect.searchParams.set('code', code)
    redirect.searchParams.set('state', given.get('state') ?? '')
    const iss = behaviour.iss === undefined ? url : behaviour.iss
    if (iss !== null) redirect.searchParams.set('iss', iss)
    response.writeHead(302, { location: redirect.href }).end()
  }

  function register(body: Record<string, unknown>, response: ServerResponse): void {
    registrations.push(body)
    const given = { client_id: `client-${registrations.length}`, token_endpoint_auth_method: 'none' }
    if (behaviour.answerRegistration) behaviour.answerRegistration(response)
    else json(response, 201, { ...body, ...given })
  }

  async function token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Object.fromEntries(new URLSearchParams(await text(request)))
    const { authorization } = request.headers
    tokenRequests.push({ ...body, ...(authorization !== undefined && { authorization }) })
    if (behaviour.answerToken) return behaviour.answerToken(response, body)
    if (body.grant_type === 'authorization_code') {
      const code = codes.get(body.code ?? '')
      codes.delete(body.code ?? '')
      const proof = createHash('sha256')
        .update(body.code_verifier ?? '')
        .digest('base64url')
      const fits =
        code && proof === code.challenge && body.redirect_uri === code.redirect && body.resource === code.resource
      return fits ? give(code, response) : json(response, 400, { error: 'invalid_grant' })
    }
    if (body.grant_type === 'refresh_token') {
      if (behaviour.refuseRefresh)
        return json(response, behaviour.refuseRefresh.status, { error: behaviour.refuseRefresh.error })
      const { refresh_token: used = '' } = body
      const granted = refreshTokens.get(used)
      if (behaviour.rotates) refreshTokens.delete(used)
      if (granted) return give(granted, response, families.get(used))
      takeBack(families.get(used))
      return json(response, 400, { error: 'invalid_grant' })
    }
    if (body.grant_type === 'client_credentials')
      return give({ scope: body.scope ?? '', resource: body.resource ?? '' }, response)
    json(response, 400, { error: 'unsupported_grant_type' })
  }

  /** Revokes all tokens of a sign-in, because two clients have the same refresh token and either may have stolen it. */
  function takeBack(family: ReadonlySet<string> = new Set()): void {
    if (family.size > 0) reused++
    for (const token of family) {
      accessTokens.delete(token)
      refreshTokens.delete(token)
    }
  }

  async function give(
    { scope, resource }: Granted,
    response: ServerResponse,
    family: Set<string> = new Set(),
  ): Promise<void> {
    const access = (await behaviour.accessToken?.({ scope, resource })) ?? `access-${randomUUID()}`
    const refresh = `refresh-${randomUUID()}`
    accessTokens.set(access, scope.split(' '))
    refreshTokens.set(refresh, { scope, resource })
    families.set(refresh, family.add(access).add(refresh))
    const expires = behaviour.expiresIn === undefined ? {} : { expires_in: behaviour.expiresIn }
    const given = { access_token: access, token_type: 'Bearer', refresh_token: refresh, ...expires }
    json(response, 200, given, { 'cache-control': 'no-store' })
  }

  return {
    url,
    behaviour,
    tokenRequests,
    registrations,
    asked,
    accepts: (given, scopes = []) =>
      scopes.every((scope) => accessTokens.get(given)?.includes(scope)) && accessTokens.has(given),
    revoke: () => accessTokens.clear(),
    get reused() {
      return reused
    },
    async visit(address) {
      const { headers } = await fetch(address, { redirect: 'manual' })
      return new URL(headers.get('location') ?? '').searchParams
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const attribute = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

export const json = (response: ServerResponse, status: number, body: object, headers = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
