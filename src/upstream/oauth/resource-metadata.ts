import * as z from 'zod'
import { safeAddress } from './address.ts'
import { type Challenge, scopesIn } from './challenge.ts'
import { OAuthProblem, quoted } from './problem.ts'
import type { Reach, Web } from './web.ts'

const published = z.looseObject({
  resource: z.string(),
  authorization_servers: z.array(z.string()).min(1),
  scopes_supported: z.array(z.string()).optional(),
})

/** What a server publishes about itself as a protected resource (RFC 9728). */
export interface ResourceMetadata {
  /** Its identifier, exactly as published: tokens are asked for by it. */
  readonly resource: string
  readonly issuers: readonly string[]
  readonly scopes?: readonly string[]
}

const wellKnown = '/.well-known/oauth-protected-resource'

/**
 * Finds the metadata of a server: where its challenge says, else at its path, else at its root. A server that has none
 * is of the first revision with authorization, and its own authorization server.
 */
export async function resourceMetadata(
  server: URL,
  challenge: Challenge | undefined,
  { web, reach }: { readonly web: Web; readonly reach: Reach },
): Promise<ResourceMetadata> {
  for (const place of places(server, challenge?.resourceMetadata)) {
    const { status, body } = await web.get(place, reach)
    if (status !== 200) {
      if (challenge?.resourceMetadata === undefined && status >= 400 && status < 500) continue
      throw new OAuthProblem(`its metadata at ${place.origin}${place.pathname} cannot be had (HTTP ${status})`)
    }
    const parsed = published.safeParse(body)
    if (!parsed.success)
      throw new OAuthProblem(`its metadata at ${place.origin}${place.pathname} is no resource metadata`)
    const { resource, authorization_servers: issuers, scopes_supported: scopes } = parsed.data
    if (!isFor(resource, server)) {
      throw new OAuthProblem(
        `its metadata is about another resource, ${quoted(resource)}, so that a token could be used there`,
      )
    }
    return { resource, issuers, ...(scopes && { scopes: scopesIn(scopes.join(' ')) }) }
  }
  return { resource: identifierOf(server), issuers: [server.origin] }
}

function places(server: URL, named: string | undefined): URL[] {
  if (named !== undefined) {
    const place = safeAddress(named, 'the address of its metadata')
    // A server speaks for itself, and cannot send us to look at others.
    if (place.origin !== server.origin) throw new OAuthProblem(`it names metadata at another origin, ${place.origin}`)
    return [place]
  }
  const path = server.pathname.replace(/\/$/, '')
  const paths = path === '' ? [wellKnown] : [`${wellKnown}${path}`, wellKnown]
  return paths.map((at) => new URL(at, server.origin))
}

/** The server itself, or something that it is a part of by whole components of the path. */
function isFor(resource: string, server: URL): boolean {
  if (!/^[\x21-\x7e]+$/.test(resource) || !URL.canParse(resource)) return false
  const { origin, pathname, hash, search } = new URL(resource)
  if (origin !== server.origin || hash !== '' || (search !== '' && search !== server.search)) return false
  const whole = (path: string) => (path.endsWith('/') ? path : `${path}/`)
  return whole(server.pathname).startsWith(whole(pathname))
}

/** Its own address, without what is no part of an identifier. */
function identifierOf(server: URL): string {
  return `${server.origin}${server.pathname === '/' ? '' : server.pathname}`
}
