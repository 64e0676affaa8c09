import * as z from 'zod'
import type { IssuerMetadata } from './discovery.ts'
import { codeIn, OAuthError } from './oauth-error.ts'
import type { OAuthHttp, Reach } from './web.ts'

const registered = z.object({
  client_id: z.string().min(1),
  client_secret: z.string().optional(),
  client_secret_expires_at: z.number().optional(),
  token_endpoint_auth_method: z.string().optional(),
})

/** Who we are to one authorization server. */
export const client = z.object({
  id: z.string(),
  secret: z.string().optional(),
  /** How it shows who it is, where that was agreed upon. */
  method: z.string().optional(),
  /** In milliseconds since the epoch. */
  expiresAt: z.number().optional(),
  /** Where codes may be sent. */
  redirects: z.array(z.string()).optional(),
})

export type OAuthClient = z.output<typeof client>

/** A client that shows who it is by signing something (RFC 7523) has its key in the configuration, and nowhere else. */
export interface SigningKey {
  /** PKCS #8, PEM. */
  readonly key: string
  readonly algorithm: string
}

/** How we show who we are: what we prefer first. */
const preferred = ['client_secret_basic', 'client_secret_post', 'none']

/**
 * Registers with an authorization server (RFC 7591). A client of a person's own machine is native, one that is reached
 * by its own name is a web application.
 */
export async function registerClient(
  { register, authMethods, origin }: { register: URL | undefined; authMethods: readonly string[]; origin: string },
  redirect: URL,
  scopes: readonly string[],
  { web, reach }: { readonly web: OAuthHttp; readonly reach: Reach },
): Promise<OAuthClient> {
  if (!register) {
    throw new OAuthError(`${origin} does not register clients by itself: register one there, and set auth.clientId`)
  }
  // A program on somebody's machine keeps no secret from them, so none is asked for where that is allowed.
  const method = authMethods.includes('none') ? 'none' : preferred.find((one) => authMethods.includes(one))
  const body = JSON.stringify({
    client_name: 'Toolway',
    redirect_uris: [redirect.href],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: redirect.protocol === 'https:' ? 'web' : 'native',
    ...(method !== undefined && { token_endpoint_auth_method: method }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  })
  const answer = await web.post(register, reach, { body, headers: { 'content-type': 'application/json' } })
  const parsed = registered.safeParse(answer.body)
  if (answer.status >= 300 || !parsed.success) {
    const why = codeIn((answer.body as { error?: unknown } | null | undefined)?.error) ?? `HTTP ${answer.status}`
    throw new OAuthError(
      `${origin} did not register us as a client (${why}): register one there, and set auth.clientId`,
    )
  }
  const {
    client_id: id,
    client_secret: secret,
    client_secret_expires_at: ends,
    token_endpoint_auth_method: agreed,
  } = parsed.data
  const agreedMethod = agreed ?? (secret === undefined ? 'none' : undefined)
  return {
    id,
    redirects: [redirect.href],
    ...(secret !== undefined && { secret }),
    ...(agreedMethod !== undefined && { method: agreedMethod }),
    ...(ends !== undefined && ends > 0 && { expiresAt: ends * 1000 }),
  }
}

/** How a client shows who it is at a token endpoint: what was agreed upon, else the best that both know. */
export function methodOf(
  { method, secret }: OAuthClient,
  { authMethods }: Pick<IssuerMetadata, 'authMethods'>,
): string {
  if (method !== undefined && (method === 'none' || secret !== undefined)) return method
  if (secret === undefined) return 'none'
  return preferred.slice(0, 2).find((one) => authMethods.includes(one)) ?? 'client_secret_basic'
}
