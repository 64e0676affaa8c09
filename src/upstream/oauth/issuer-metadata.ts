import * as z from 'zod'
import { safeAddress } from './address.ts'
import { OAuthProblem, quoted } from './problem.ts'
import type { Reach, Web } from './web.ts'

const words = z.array(z.string())

const published = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string(),
  registration_endpoint: z.string().optional(),
  revocation_endpoint: z.string().optional(),
  scopes_supported: words.optional(),
  code_challenge_methods_supported: words.optional(),
  token_endpoint_auth_methods_supported: words.optional(),
  client_id_metadata_document_supported: z.boolean().optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})

/** What an authorization server publishes about itself (RFC 8414, or OpenID Connect discovery). */
export interface IssuerMetadata {
  readonly issuer: string
  readonly authorize?: URL
  readonly token: URL
  readonly register?: URL
  readonly scopes: readonly string[]
  /** Whether it knows PKCE with S256. */
  readonly pkce: boolean
  /** How clients may show who they are at the token endpoint. */
  readonly authMethods: readonly string[]
  /** It fetches what clients publish about themselves. */
  readonly clientDocuments: boolean
  /** It says in each answer who it is. */
  readonly namesItself: boolean
}

/** Fetches the metadata of an issuer, and believes it only where it is about exactly this one. */
export async function issuerMetadata(
  issuer: string,
  { web, reach }: { readonly web: Web; readonly reach: Reach },
): Promise<IssuerMetadata> {
  const at = safeAddress(issuer, 'the issuer that it names')
  if (at.search !== '' || at.hash !== '') throw new OAuthProblem(`the issuer that it names is none: ${quoted(issuer)}`)
  for (const place of places(at)) {
    const { status, body } = await web.get(place, reach)
    if (status >= 400 && status < 500) continue
    if (status !== 200)
      throw new OAuthProblem(`${at.origin} cannot be asked now (HTTP ${status})`, { unreachable: true })
    return read(body, issuer, at)
  }
  throw new OAuthProblem(`${quoted(issuer)} publishes no metadata of an authorization server`)
}

/** With a path the well-known part is put before it; OpenID Connect puts it behind. */
function places({ origin, pathname }: URL): URL[] {
  const path = pathname.replace(/\/$/, '')
  const oauth = '/.well-known/oauth-authorization-server'
  const openId = '/.well-known/openid-configuration'
  const paths = path === '' ? [oauth, openId] : [`${oauth}${path}`, `${openId}${path}`, `${path}${openId}`]
  return paths.map((place) => new URL(place, origin))
}

function read(body: unknown, issuer: string, { origin, protocol }: URL): IssuerMetadata {
  const parsed = published.safeParse(body)
  if (!parsed.success)
    throw new OAuthProblem(`${origin} publishes something that is no metadata of an authorization server`)
  const found = parsed.data
  if (found.issuer !== issuer) {
    throw new OAuthProblem(`the metadata of ${quoted(issuer)} is that of another issuer, ${quoted(found.issuer)}`)
  }
  const endpoint = (address: string, what: string): URL => {
    const url = safeAddress(address, `its ${what}`)
    // Out there nobody has business with what listens on this machine.
    if (protocol === 'https:' && url.protocol !== 'https:') throw new OAuthProblem(`its ${what} is not https`)
    return url
  }
  return {
    issuer,
    ...(found.authorization_endpoint !== undefined && {
      authorize: endpoint(found.authorization_endpoint, 'authorization endpoint'),
    }),
    token: endpoint(found.token_endpoint, 'token endpoint'),
    ...(found.registration_endpoint !== undefined && {
      register: endpoint(found.registration_endpoint, 'registration endpoint'),
    }),
    scopes: found.scopes_supported ?? [],
    pkce: found.code_challenge_methods_supported?.includes('S256') ?? false,
    // What is not said is the first of them, by the standard.
    authMethods: found.token_endpoint_auth_methods_supported ?? ['client_secret_basic'],
    clientDocuments: found.client_id_metadata_document_supported ?? false,
    namesItself: found.authorization_response_iss_parameter_supported ?? false,
  }
}
