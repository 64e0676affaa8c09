import * as z from 'zod'
import type { Vault } from '../../core/vault.ts'
import { client, type OAuthClient } from './client.ts'

/** Whose grant it is: of one server at one address, and of one principal where each has its own. */
export interface GrantHolder {
  readonly server: string
  readonly url: string
  /** Empty for the grant that all share. */
  readonly principal: string
}

const grant = z.object({
  issuer: z.string(),
  resource: z.string(),
  client,
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  expiresAt: z.number().optional(),
  /** Those that it was given for, as far as that is known. */
  scopes: z.array(z.string()),
  grantedAt: z.number(),
})

/** A token, and what it takes to get the next one. */
export type Grant = z.output<typeof grant>

const demand = z.object({
  /** Who was trusted by the server when it was asked last. */
  issuer: z.string().optional(),
  resourceMetadata: z.string().optional(),
  /** What its challenge asked for. */
  scopes: z.array(z.string()).optional(),
  /** What a request lacked although it had a token, and the scopes of that one. */
  more: z.array(z.string()).optional(),
})

/** What a server said that it wants: kept, because whoever gets the grant may be another process. */
export type AuthDemand = z.output<typeof demand>

/**
 * What is kept of grants. Each stands under its issuer: what one authorization server gave is never found when another
 * one is dealt with, so that it cannot be sent there.
 */
export interface Grants {
  demandOf(holder: GrantHolder): Promise<AuthDemand>
  demanded(holder: GrantHolder, demand: AuthDemand): Promise<void>
  grantOf(holder: GrantHolder, issuer: string): Promise<Grant | undefined>
  granted(holder: GrantHolder, grant: Grant): Promise<void>
  /** Forgets a grant that is none any more. */
  ended(holder: GrantHolder, issuer: string): Promise<void>
  /** The client that was registered with an issuer for a server. */
  clientOf(server: string, issuer: string): Promise<OAuthClient | undefined>
  registered(server: string, issuer: string, client: OAuthClient): Promise<void>
  /** Forgets all that is kept for a server, of one principal or of all; how many grants that were. */
  forget(server: string, principal?: string): Promise<number>
  list(): Promise<readonly (GrantHolder & { readonly grant: Grant })[]>
}

/** Tells of every access token that it keeps or finds. */
export function createGrants(vault: Vault, seen: (accessToken: string) => void): Grants {
  const read = async <T>(key: Key, schema: z.ZodType<T>): Promise<T | undefined> => {
    const text = await vault.read(written(key))
    return text === undefined ? undefined : schema.safeParse(JSON.parse(text)).data
  }
  const write = (key: Key, value: object) => vault.write(written(key), JSON.stringify(value))
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
    clientOf: (server, issuer) => read(['client', issuer, server], client),
    registered: (server, issuer, value) => write(['client', issuer, server], value),
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

/** What it is, the issuer, the server, its address, the principal. */
type Key = readonly string[]

const written = (key: Key): string => JSON.stringify(key)
const parsed = (key: string): Key => JSON.parse(key)

const grantKey = ({ server, url, principal }: GrantHolder, issuer: string): Key => [
  'grant',
  issuer,
  server,
  url,
  principal,
]
/** Which issuer it is about is what it says itself. */
const demandKey = ({ server, url, principal }: GrantHolder): Key => ['demand', '', server, url, principal]
