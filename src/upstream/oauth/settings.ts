import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Locks } from '../../core/locks.ts'
import type { Client, SigningKey } from './client.ts'
import type { Grants } from './grants.ts'
import type { PlaceOf, Web } from './web.ts'

/** What the configuration says about getting tokens for a server. */
export type OAuthSettings = Extract<Extract<ServerConfig, { url: string }>['auth'], { type: 'oauth' }>

/** What all of this works with. */
export interface OAuthParts {
  readonly grants: Grants
  readonly locks: Locks
  readonly web: Web
  readonly placeOf: PlaceOf
  readonly clock: Clock
}

/** The client of the configuration, where it names one. */
export const configuredClient = ({ clientId: id, clientSecret: secret }: OAuthSettings): Client | undefined =>
  id === undefined ? undefined : { id, ...(secret !== undefined && { secret }) }

export const signingKey = ({ privateKey: key, signingAlgorithm: algorithm }: OAuthSettings): SigningKey | undefined =>
  key === undefined ? undefined : { key, algorithm }

/**
 * The only issuer that a configured client may be shown to: the one that the configuration names, else the first one
 * that it was shown to. Anybody can name another authorization server; that must not get them our secret.
 */
export const onlyIssuer = ({ issuer, clientId }: OAuthSettings, first: string | undefined): string | undefined =>
  issuer ?? (clientId === undefined ? undefined : first)
