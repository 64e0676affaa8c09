import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Locks } from '../../core/stores.ts'
import type { GrantHolder, Grants, OAuthClient } from './grants.ts'
import { type OAuthHttp, type Reach, reachOf } from './web.ts'

export type OAuthSettings = Extract<Extract<ServerConfig, { url: string }>['auth'], { type: 'oauth' }>

/** What all servers that use OAuth share. */
export interface OAuthParts {
  readonly grants: Grants
  readonly locks: Locks
  readonly web: OAuthHttp
  readonly clock: Clock
  readonly log: Log
}

/** An MCP server that uses OAuth, for one grant holder. */
export class ProtectedServer {
  readonly holder: GrantHolder
  readonly settings: OAuthSettings
  readonly parts: OAuthParts
  readonly url: URL

  constructor(holder: GrantHolder, settings: OAuthSettings, parts: OAuthParts) {
    this.holder = holder
    this.settings = settings
    this.parts = parts
    this.url = new URL(holder.url)
  }

  /** Which addresses the server may refer to. */
  reach(): Promise<Reach> {
    return reachOf(this.url)
  }

  /** The client in the configuration. */
  get client(): OAuthClient | undefined {
    const { clientId: id, clientSecret: secret } = this.settings
    return id === undefined ? undefined : { id, secret }
  }

  /**
   * The only issuer that a configured client may be used with: the configured issuer, else the first one that was used.
   * A server can name any authorization server, so other issuers must not receive the client's secret.
   */
  onlyIssuer(first: string | undefined): string | undefined {
    return this.settings.issuer ?? (this.settings.clientId === undefined ? undefined : first)
  }
}
