import * as z from 'zod'
import type { Vault } from '../../core/stores.ts'
import { client, type OAuthClient } from './client.ts'

/** Whose grant it is: of one server at one URL, and of one principal where each has its own. */
export interface GrantHolder {
  readonly server: string
  readonly url: string
  /** Empty for a shared grant. */
  readonly principal: string
}

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

/** A token, and what is needed to renew it. */
export type Grant = z.output<typeof grant>

const demand = z.object({
  /** The server's authorization server when it was last asked. */
  issuer: z.string().optional(),
  resourceMetadata: z.string().optional(),
  /** From the server's challenge. */
  scopes: z.array(z.string()).optional(),
  /** Scopes that a request with a token lacked, and those of that token. */
  more: z.array(z.string()).optional(),
})

/** What a server requires; stored, because another process may do the sign-in. */
export type AuthDemand = z.output<typeof demand>

/**
 * Stored grants. Each is stored under its issuer, so that a token of one authorization server is never sent to
 * another.
 */
export interface Grants {
  demandOf(holder: GrantHolder): Promise<AuthDemand>
  demanded(holder: GrantHolder, demand: AuthDemand): Promise<void>
  grantOf(holder: GrantHolder, issuer: string): Promise<Grant | undefined>
  granted(holder: GrantHolder, grant: Grant): Promise<void>
  ended(holder: GrantHolder, issuer: string): Promise<void>
  clientOf(server: string, issuer: string): Promise<OAuthClient | undefined>
  registered(server: string, issuer: string, client: OAuthClient): Promise<void>
  /** Removes all data of a server, for one principal or for all; returns the number of grants. */
  forget(server: string, principal?: string): Promise<number>
  list(): Promise<readonly (GrantHolder & { readonly grant: Grant })[]>
}

/** Reports every access token that it stores or reads. */
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

/** Kind, issuer, server, URL, principal. */
type Key = readonly string[]

const written = (key: Key): string => JSON.stringify(key)
const parsed = (key: string): Key => JSON.parse(key)

const holderKey = ({ server, url, principal }: GrantHolder): Key => [server, url, principal]
const grantKey = (holder: GrantHolder, issuer: string): Key => ['grant', issuer, ...holderKey(holder)]
/** The issuer is part of the value. */
const demandKey = (holder: GrantHolder): Key => ['demand', '', ...holderKey(holder)]
