import { configSchema, type ServerConfig } from '../../config/schema.ts'
import { type Clock, systemClock } from '../../core/clock.ts'
import { type Log, silentLog } from '../../core/log.ts'
import type { Locks, Vault } from '../../core/stores.ts'
import { memoryLocks } from '../../stores/vault.ts'
import { discardBody } from '../transports/http-channel.ts'
import { Http1Channel } from '../transports/http1/channel.ts'
import { authorizedChannel } from './authorization.ts'
import type { TestIssuer } from './issuer.fixture.ts'
import { OAuth } from './oauth.ts'

/** A vault in memory. */
export function memoryVault(): Vault & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>()
  return {
    kept,
    read: async (key) => kept.get(key),
    write: async (key, text) => void kept.set(key, text),
    remove: async (key) => void kept.delete(key),
    keys: async () => [...kept.keys()].sort(),
  }
}

export const openOAuth = (parts: { vault?: Vault; locks?: Locks; clock?: Clock; log?: Log } = {}): OAuth =>
  new OAuth({ vault: memoryVault(), locks: memoryLocks(), clock: systemClock, log: silentLog, ...parts })

export function serverConfig(url: string, auth: object = {}): ServerConfig {
  const config = configSchema.parse({ mcpServers: { files: { url, auth: { type: 'oauth', ...auth } } } })
  return config.mcpServers.files as ServerConfig
}

const redirect = new URL('http://127.0.0.1:1234/callback')

/** Signs in as a person who consents to everything. */
export async function signIn(
  oauth: OAuth,
  config: ServerConfig,
  issuer: TestIssuer,
  principal?: string,
): Promise<void> {
  const flow = await oauth.begin('files', config, redirect, principal)
  await flow.finish(await issuer.visit(flow.url))
}

/** Sends one request to the server as a transport would; returns the status. */
export async function ask(
  oauth: OAuth,
  config: ServerConfig,
  method = 'tools/list',
  principal?: string,
): Promise<number> {
  const url = new URL(config.transport === 'stdio' ? '' : config.url)
  const authorize = oauth.authorize('files', config, principal)
  if (!authorize) throw new Error('no OAuth')
  await using plain = new Http1Channel(url.origin, systemClock)
  const channel = authorizedChannel(plain, authorize)
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method }))
  const headers = { 'content-type': 'application/json' }
  return (
    await channel.request({ method: 'POST', path: url.pathname, headers, body }, (head) =>
      discardBody(head, systemClock),
    )
  ).status
}

export { redirect }
