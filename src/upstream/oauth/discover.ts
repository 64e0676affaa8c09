import type { Challenge } from './challenge.ts'
import { type IssuerMetadata, issuerMetadata } from './issuer-metadata.ts'
import { OAuthProblem, quoted } from './problem.ts'
import { resourceMetadata } from './resource-metadata.ts'
import { type PlaceOf, reachOf, type Web } from './web.ts'

/** Who gives out tokens for a server, and what to ask for. */
export interface Discovered {
  /** The identifier of the server: tokens are asked for it and no other (RFC 8707). */
  readonly resource: string
  /** The scopes that the server knows of. */
  readonly scopes?: readonly string[]
  readonly issuer: IssuerMetadata
}

export interface DiscoverOptions {
  readonly server: URL
  readonly challenge?: Challenge | undefined
  /** The only issuer that will do: the client is registered there, and its secret is for no other. */
  readonly only?: string | undefined
  /** The issuer of the grant that we have: where the server still names it, it stays that one. */
  readonly before?: string | undefined
  readonly web: Web
  readonly placeOf: PlaceOf
}

/** Asks the server whom it trusts, and them how to get a token. */
export async function discoverIssuer(options: DiscoverOptions): Promise<Discovered> {
  const { server, challenge, web, placeOf } = options
  const reach = await reachOf(server, placeOf)
  const { resource, issuers, scopes } = await resourceMetadata(server, challenge, { web, reach })
  const issuer = chosen(issuers, options)
  return { resource, ...(scopes && { scopes }), issuer: await issuerMetadata(issuer, { web, reach }) }
}

function chosen(issuers: readonly string[], { only, before }: DiscoverOptions): string {
  if (only !== undefined && !issuers.includes(only)) {
    const named = quoted(issuers[0])
    throw new OAuthProblem(
      `it trusts ${named}, and the client is registered with ${quoted(only)}, so nothing was sent there`,
    )
  }
  return only ?? issuers.find((issuer) => issuer === before) ?? (issuers[0] as string)
}
