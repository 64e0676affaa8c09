import * as z from 'zod'
import type { Vault } from '../../core/stores.ts'
import { jsonValue } from '../../json/parse-json.ts'

/** The holder of a grant: one server at one URL, and one principal if each principal has its own grant. */
export interface GrantHolder {
  readonly server: string
  readonly url: string
  /** The principal; empty for a grant that all principals share. */
  readonly principal: string
}

const client = z.object({
  id: z.string(),
  secret: z.string().optional(),
  method: z.string().optional(),
  /** When the client's secret expires, in milliseconds since the epoch. */
  expiresAt: z.number().optional(),
  redirects: z.array(z.string()).optional(),
  /** The scopes that the client was registered for, beyond which some authorization servers grant none. */
  scopes: z.array(z.string()).optional(),
})

export type OAuthClient = z.output<typeof client>

const grant = z.object({
  issuer: z.string(),
  resource: z.string(),
  client,
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  expiresAt: z.number().optional(),
  scopes: z.array(z.string()),
  grantedAt: z.number(),
})

/** An access token, and the data needed to renew it. */
export type Grant = z.output<typeof grant>

const demand = z.object({
  /** The authorization server named in the MCP server's most recent response. */
  issuer: z.string().optional(),
  resourceMetadata: z.string().optional(),
  /** Scopes that the server's challenge named. */
  scopes: z.array(z.string()).optional(),
  /** The scopes of a token that was insufficient, and the scopes that it lacked. */
  more: z.array(z.string()).optional(),
})

/** What a server requires for authorization. Stored, because another process may handle the sign-in. */
export type AuthDemand = z.output<typeof demand>

/** Stores each grant under its issuer, so that one authorization server's token is never sent to another. */
export interface Grants {
  demandOf(holder: GrantHolder): Promise<AuthDemand>
  demanded(holder: GrantHolder, demand: AuthDemand): Promise<void>
  grantOf(holder: GrantHolder, issuer: string): Promise<Grant | undefined>
  granted(holder: GrantHolder, grant: Grant): Promise<void>
  ended(holder: GrantHolder, issuer: string): Promise<void>
  clientOf(server: string, issuer: string): Promise<OAuthClient | undefined>
  registered(server: string, issuer: string, client: OAuthClient): Promise<void>
  /** Removes a registered client, so that the next sign-in registers another one. */
  unregistered(server: string, issuer: string, id: string | undefined): Promise<void>
  /** Removes all data for a server, for one principal or for all. Returns the number of removed grants. */
  forget(server: string, principal?: string): Promise<number>
  list(): Promise<readonly (GrantHolder & { readonly grant: Grant })[]>
}

/** Grants in a vault. Calls `seen` with every access token that is stored or read. */
export function createGrants(vault: Vault, seen: (accessToken: string) => void): Grants {
  const read = async <T>(key: Key, schema: z.ZodType<T>): Promise<T | undefined> => {
    const text = await vault.read(written(key))
    return text === undefined ? undefined : schema.safeParse(jsonValue(text)).data
  }
  const write = (key: Key, value: object) => vault.write(written(key), JSON.stringify(value))
  const clientOf: Grants['clientOf'] = (server, issuer) => read(['client', issuer, server], client)
  return {
    demandOf: async (holder) => (await read(demandKey(holder), demand)) ?? {},
    demanded: (holder, value) => write(demandKey(holder), value),
    async grantOf(holder, issuer) {
      const kept = await read(grantKey(holder, issuer), grant)
      if (kept) seen(kept.accessToken)
      return kept
    },
    granted(holder, value) {
      seen(value.accessToken)
      return write(grantKey(holder, value.issuer), value)
    },
    ended: (holder, issuer) => vault.remove(written(grantKey(holder, issuer))),
    clientOf,
    registered: (server, issuer, value) => write(['client', issuer, server], value),
    async unregistered(server, issuer, id) {
      const kept = await clientOf(server, issuer)
      if (kept?.id === id) await vault.remove(written(['client', issuer, server]))
    },
    async forget(server, principal) {
      const keys = (await vault.keys()).map(parsed).filter((key) => {
        if (key[2] !== server) return false
        return principal === undefined || (key[0] !== 'client' && key[4] === principal)
      })
      await Promise.all(keys.map((key) => vault.remove(written(key))))
      return keys.filter(([kind]) => kind === 'grant').length
    },
    async list() {
      const keys = (await vault.keys()).map(parsed).filter(([kind]) => kind === 'grant')
      const found = keys.map(async ([, issuer = '', server = '', url = '', principal = '']) => {
        const holder = { server, url, principal }
        const kept = await read(grantKey(holder, issuer), grant)
        return kept ? [{ ...holder, grant: kept }] : []
      })
      return (await Promise.all(found)).flat()
    },
  }
}

/** The name of the lock to hold while a grant is replaced. */
export const grantLock = (holder: GrantHolder, issuer: string): string => `grant ${JSON.stringify([issuer, holder])}`

/** The parts of a key in the vault: kind, issuer, server, URL, principal. */
type Key = readonly string[]

const written = (key: Key): string => JSON.stringify(key)
const parsed = (key: string): Key => jsonValue(key) as Key

const holderKey = ({ server, url, principal }: GrantHolder): Key => [server, url, principal]
const grantKey = (holder: GrantHolder, issuer: string): Key => ['grant', issuer, ...holderKey(holder)]
/** The key of a demand. Its issuer part is empty, because the issuer is in the value. */
const demandKey = (holder: GrantHolder): Key => ['demand', '', ...holderKey(holder)]
