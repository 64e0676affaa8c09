import * as z from 'zod'
import type { IssuerMetadata } from './discovery.ts'
import type { OAuthClient } from './grants.ts'
import { codeIn, OAuthError } from './oauth-error.ts'
import type { ProtectedServer } from './protected-server.ts'

const registered = z.object({
  client_id: z.string().min(1),
  client_secret: z.string().optional(),
  client_secret_expires_at: z.number().optional(),
  token_endpoint_auth_method: z.string().optional(),
})

/** Client authentication methods in order of preference. */
const preferred = ['client_secret_basic', 'client_secret_post', 'none']

/** Registers a client (RFC 7591): as a web application if the redirect is https, otherwise as a native application. */
export async function registerClient(
  { issuer, register, authMethods }: IssuerMetadata,
  redirect: URL,
  scopes: readonly string[],
  server: ProtectedServer,
): Promise<OAuthClient> {
  const { origin } = new URL(issuer)
  const advice = 'register a client there, and set auth.clientId'
  if (!register) throw new OAuthError(`${origin} does not support client registration: ${advice}`)
  // Prefer a client without a secret: a program on a person's machine cannot keep a secret from that person.
  const method = authMethods.includes('none') ? 'none' : preferred.find((one) => authMethods.includes(one))
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
  const parsed = registered.safeParse(answer.body)
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

/** The authentication method for the token endpoint: the registered one, or the best one that both sides support. */
export function methodOf({ method, secret }: OAuthClient, { authMethods }: Pick<IssuerMetadata, 'authMethods'>) {
  if (method !== undefined && (method === 'none' || secret !== undefined)) return method
  if (secret === undefined) return 'none'
  return preferred.slice(0, 2).find((one) => authMethods.includes(one)) ?? 'client_secret_basic'
}
