import { isDeepStrictEqual } from 'node:util'
import type { Config, HttpConfig, ServerConfig } from '../config/schema.ts'
import type { Entry } from '../core/entry.ts'
import type { Log } from '../core/log.ts'
import { createConnector } from '../upstream/connection/connect.ts'
import { createServer, type UpstreamServer } from '../upstream/server.ts'
import type { GenerationContext } from './context.ts'
import { version } from './package-paths.ts'

export interface ConfiguredServer {
  readonly server: UpstreamServer
  readonly builtFrom: {
    readonly config: ServerConfig
    readonly timeoutMs: number
    readonly maxTimeoutMs: number
    readonly refreshMs: number
    readonly mode: string
    readonly health: Config['health']
  }
}

export type ConfiguredServers = ReadonlyMap<string, ConfiguredServer>

export const serversOf = ({ servers }: { readonly servers: ConfiguredServers }): UpstreamServer[] =>
  [...servers.values()].map(({ server }) => server)

/** Without Toolway itself. */
const serverNames = (config: Config, log: Log): string[] =>
  Object.entries(config.mcpServers).flatMap(([name, server]) => {
    if (!isOurselves(server, config.server)) return [name]
    log.warn({ server: name }, 'skipped: its url is the endpoint of this gateway')
    return []
  })

/**
 * Reuses servers of the generation before whose settings have not changed. A separate function, so that no closure of
 * the new generation keeps the one before in memory.
 */
export const buildServers = (
  config: Config,
  context: GenerationContext,
  before: ConfiguredServers | undefined,
): ConfiguredServers =>
  new Map(serverNames(config, context.log).map((name) => [name, buildServer(name, config, context, before)]))

function buildServer(
  name: string,
  config: Config,
  context: GenerationContext,
  before: ConfiguredServers | undefined,
): ConfiguredServer {
  const server = config.mcpServers[name] as ServerConfig
  const { timeout: timeoutMs, maxTimeout: maxTimeoutMs } = config.defaults
  const refreshMs = server.refresh ?? config.discovery.refresh
  const { health } = config
  const builtFrom = { config: server, timeoutMs, maxTimeoutMs, refreshMs, mode: config.discovery.mode, health }
  const known = before?.get(name)
  if (known && isDeepStrictEqual(known.builtFrom, builtFrom)) return known
  const { store, seal, orphanReaper, oauth, clock, log } = context
  return {
    builtFrom,
    server: createServer({
      name,
      config: server,
      timeoutMs,
      maxTimeoutMs,
      refreshMs,
      discovery: config.discovery.mode,
      health,
      decide: (caller, entry) => context.policy().decide(caller, entry),
      judgesDefinitions: () => context.policy().judgesDefinitions,
      breaker: () => context.breakers.stateOf(name),
      store,
      servedUri: (uri) => context.servedUri(name, uri),
      connect: createConnector({
        name,
        config: server,
        identity: { name: 'toolway', version },
        orphanReaper,
        oauth,
        redact: context.redact,
        clock,
        log,
      }),
      seal,
      // A server that an operator has paused stays paused when its configuration changes.
      paused: known?.server.control.paused ?? false,
      clock,
      log,
    }),
  }
}

/** Loopback under any name, with our own port and path. */
export function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

/**
 * Returns a function that reports whether any list changed since its last call. The first list of a kind of client is
 * not a change; health is ignored.
 */
export function createListChangeDetector(server: Pick<UpstreamServer, 'kinds'>): () => boolean {
  const before = new Map<string, readonly Entry[]>()
  return () => {
    let changed = false
    for (const [kind, source] of server.kinds()) {
      const [old, entries] = [before.get(kind), source.entries()]
      if (old === entries) continue
      before.set(kind, entries)
      if (old && !isDeepStrictEqual(old.map(offered), entries.map(offered))) changed = true
    }
    return changed
  }
}

const offered = ({ kind, definition }: Entry) => [kind, definition]
