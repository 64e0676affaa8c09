import * as z from 'zod'
import type { ServerConfig } from '../../config/schema.ts'
import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { type OAuthHttp, type Reach, reachOf } from './web.ts'

/** The holder of a grant: one server at one URL, and one principal if each principal has its own grant. */
export interface GrantHolder {
  readonly server: string
  readonly url: string
  /** The principal; empty for a grant that all principals share. */
  readonly principal: string
}

const clientSchema = z.object({
  id: z.string(),
  secret: z.string().optional(),
  method: z.string().optional(),
  /** When the client's secret expires, in milliseconds since the epoch. */
  expiresAt: z.number().optional(),
  redirects: z.array(z.string()).optional(),
  /** The scopes that the client was registered for, beyond which some authorization servers grant none. */
  scopes: z.array(z.string()).optional(),
})

export type OAuthClient = z.output<typeof clientSchema>

const grantSchema = z.object({
  issuer: z.string(),
  resource: z.string(),
  client: clientSchema,
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  expiresAt: z.number().optional(),
  scopes: z.array(z.string()),
  grantedAt: z.number(),
})

/** An access token, and the data needed to renew it. */
export type Grant = z.output<typeof grantSchema>

export interface GrantSummary extends GrantHolder, Pick<Grant, 'issuer' | 'scopes' | 'expiresAt' | 'grantedAt'> {
  readonly renewable: boolean
}

const demandSchema = z.object({
  /** The authorization server named in the MCP server's most recent response. */
  issuer: z.string().optional(),
  resourceMetadata: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  /** The scopes of a token that was insufficient, and the scopes that it lacked. */
  more: z.array(z.string()).optional(),
})

/** What a server requires for authorization. Stored, because another process may handle the sign-in. */
export type AuthDemand = z.output<typeof demandSchema>

/** Stores each grant in a vault under its issuer, so that one authorization server's token is never sent to another. */
export class Grants {
  readonly #vault: Vault
  readonly #seen: (accessToken: string) => void

  /** Calls `seen` with every access token that is stored or read. */
  constructor(vault: Vault, seen: (accessToken: string) => void) {
    this.#vault = vault
    this.#seen = seen
  }

  async demandOf(holder: GrantHolder): Promise<AuthDemand> {
    return (await this.#read(demandKey(holder), demandSchema)) ?? {}
  }

  demanded(holder: GrantHolder, demand: AuthDemand): Promise<void> {
    return this.#write(demandKey(holder), demand)
  }

  async grantOf(holder: GrantHolder, issuer: string): Promise<Grant | undefined> {
    const grant = await this.#read(grantKey(holder, issuer), grantSchema)
    if (grant) this.#seen(grant.accessToken)
    return grant
  }

  granted(holder: GrantHolder, grant: Grant): Promise<void> {
    this.#seen(grant.accessToken)
    return this.#write(grantKey(holder, grant.issuer), grant)
  }

  ended(holder: GrantHolder, issuer: string): Promise<void> {
    return this.#remove(grantKey(holder, issuer))
  }

  clientOf(server: string, issuer: string): Promise<OAuthClient | undefined> {
    return this.#read(['client', issuer, server], clientSchema)
  }

  registered(server: string, issuer: string, client: OAuthClient): Promise<void> {
    return this.#write(['client', issuer, server], client)
  }

  /** Removes a registered client, so that the next sign-in registers another one. */
  async unregistered(server: string, issuer: string, id: string | undefined): Promise<void> {
    const client = await this.clientOf(server, issuer)
    if (client?.id === id) await this.#remove(['client', issuer, server])
  }

  /** Removes all data for a server, for one principal or for all. Returns the number of removed grants. */
  async forget(server: string, principal?: string): Promise<number> {
    const keys = (await this.#keys()).filter((key) => {
      if (key[2] !== server) return false
      return principal === undefined || (key[0] !== 'client' && key[4] === principal)
    })
    await Promise.all(keys.map((key) => this.#remove(key)))
    return keys.filter(([kind]) => kind === 'grant').length
  }

  async list(): Promise<readonly GrantSummary[]> {
    const keys = (await this.#keys()).filter(([kind]) => kind === 'grant')
    const found = keys.map(async (key) => {
      const [, , server = '', url = '', principal = ''] = key
      const grant = await this.#read(key, grantSchema)
      if (!grant) return []
      const { issuer, scopes, expiresAt, grantedAt, refreshToken } = grant
      const renewable = refreshToken !== undefined
      return { server, url, principal, issuer, scopes, expiresAt, grantedAt, renewable }
    })
    return (await Promise.all(found)).flat()
  }

  async #keys(): Promise<readonly Key[]> {
    return (await this.#vault.keys()).map((key) => jsonValue(key) as Key)
  }

  async #read<T>(key: Key, schema: z.ZodType<T>): Promise<T | undefined> {
    const text = await this.#vault.read(JSON.stringify(key))
    return text === undefined ? undefined : schema.safeParse(jsonValue(text)).data
  }

  #write(key: Key, value: object): Promise<void> {
    return this.#vault.write(JSON.stringify(key), JSON.stringify(value))
  }

  #remove(key: Key): Promise<void> {
    return this.#vault.remove(JSON.stringify(key))
  }
}

export const grantLock = ({ server, url, principal }: GrantHolder, issuer: string): string =>
  `grant ${JSON.stringify([issuer, { server, url, principal }])}`

/** The parts of a key in the vault: kind, issuer, server, URL, principal. */
type Key = readonly string[]

const holderKey = ({ server, url, principal }: GrantHolder): Key => [server, url, principal]
const grantKey = (holder: GrantHolder, issuer: string): Key => ['grant', issuer, ...holderKey(holder)]
/** The key of a demand. Its issuer part is empty, because the issuer is in the value. */
const demandKey = (holder: GrantHolder): Key => ['demand', '', ...holderKey(holder)]

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

  reach(): Promise<Reach> {
    return reachOf(this.url)
  }

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
