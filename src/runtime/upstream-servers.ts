import { scanText } from '../catalog/scan/scan.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config, HttpConfig, ServerConfig } from '../config/schema.ts'
import { type ErrorCode, ToolwayError } from '../core/errors.ts'
import { memoize } from '../lib/memoize.ts'
import { mayUseSome } from '../policy/decide.ts'
import { createConnector } from '../upstream/connection/connect.ts'
import { listDigest } from '../upstream/listing/server-listing.ts'
import { UpstreamServer } from '../upstream/server.ts'
import type { SharedParts } from './generations.ts'
import { identity } from './package-paths.ts'
import type { GenerationContext } from './process-state.ts'

export interface ConfiguredServer {
  readonly server: UpstreamServer
  readonly builtFrom: ReturnType<typeof serverSettings>
}

export type ConfiguredServers = ReadonlyMap<string, ConfiguredServer>

export const serversOf = ({ servers }: { readonly servers: ConfiguredServers }): UpstreamServer[] =>
  [...servers.values()].map(({ server }) => server)

/** Builds a generation's servers, and reuses those of the previous generation whose settings have not changed. */
export const buildServers = (
  config: Config,
  context: GenerationContext,
  parts: SharedParts,
  before: { readonly servers: ConfiguredServers; readonly serverParts: SharedParts } | undefined,
): ConfiguredServers =>
  new Map(
    Object.entries(config.mcpServers).flatMap(([name, server]) => {
      if (isThisGateway(server, config.server)) {
        context.log.warn({ server: name }, "skipped: its url is this gateway's own endpoint")
        return []
      }
      const builtFrom = serverSettings(server, config)
      // Keep a server paused when its configuration changes, if an operator has paused it.
      const paused = before?.servers.get(name)?.server.control.paused ?? false
      const open = () => openServer(name, server, builtFrom, paused, context)
      return [[name, { builtFrom, server: parts.share(before?.serverParts, name, builtFrom, open) }]]
    }),
  )

/** Applies the settings that servers take without a restart to those that were kept. */
export function updateServers({ servers, loaded: { config } }: { servers: ConfiguredServers; loaded: LoadedConfig }) {
  for (const [name, { server }] of servers) server.selectTools((config.mcpServers[name] as ServerConfig).tools)
}

function serverSettings(config: ServerConfig, { defaults, discovery, health }: Config) {
  const { maxEntries, maxListSize } = discovery
  return {
    // These apply without a restart of the server: capturing happens in the pipeline, and `selectTools` selects tools.
    config: { ...config, capture: false, tools: { include: [], exclude: [] } } satisfies ServerConfig,
    timeoutMs: defaults.timeout,
    maxTimeoutMs: defaults.maxTimeout,
    refreshMs: config.refresh ?? discovery.refresh,
    discovery: discovery.mode,
    listLimits: { maxEntries, maxListSize },
    health,
  }
}

/**
 * Opens a server. A function of its own, so that no closure in the new generation keeps the previous one in memory.
 */
function openServer(
  name: string,
  config: ServerConfig,
  { config: _, ...defaults }: ConfiguredServer['builtFrom'],
  paused: boolean,
  context: GenerationContext,
): UpstreamServer {
  const { store, seal, starts, orphanReaper, oauth, redact, budgets, clock, log } = context
  const { tasks } = budgets
  return new UpstreamServer({
    name,
    config,
    defaults,
    policy: {
      decide: (caller, entry) => context.generations.current.policy.decide(caller, entry),
      mayUseSome: (caller, entries) => mayUseSome(context.generations.current.policy, caller, name, entries),
      judgesDefinitions: () => context.generations.current.policy.judgesDefinitions,
      isHarmless: isHarmlessText,
    },
    host: {
      store,
      seal,
      servedUris: context.servedUris,
      redact,
      breaker: () => context.breakers.stateOf(name),
      starts,
      paused,
    },
    connect: createConnector({ name, config, identity, host: { orphanReaper, oauth, redact, tasks }, clock, log }),
    clock,
    log,
  })
}

/** Whether the scanner finds nothing in a text. Cached, because a server's status is needed for every list. */
const isHarmlessText = memoize((text) => scanText(text, '').length === 0, 1_024, 2_048)

/** Whether a server's URL points to this gateway: a loopback address with the gateway's own port and path. */
export function isThisGateway(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

/** Whether two configurations lead to the same running program. A process is never the same. */
export const haveSameUrl = (one: ServerConfig, other: ServerConfig | undefined): boolean =>
  one.transport !== 'stdio' && other !== undefined && other.transport !== 'stdio' && one.url === other.url

/** Why calls to a server are not allowed now, whatever the servers of earlier generations still offer. */
export function whyUnserved(
  name: string,
  { servers }: { readonly servers: ConfiguredServers },
): ToolwayError | undefined {
  const known = servers.get(name)
  const refuse = (code: ErrorCode, text: string) => new ToolwayError(code, text, { server: name })
  if (!known)
    return refuse('SERVER_NOT_FOUND', `The server ${name} was removed while the call waited. Nothing was sent.`)
  const { health, reason } = known.server.status()
  if (health !== 'disabled') return undefined
  return refuse('SERVER_DISABLED', `The server ${name} is disabled: ${reason}. Nothing was sent.`)
}

/**
 * Creates a function that returns the digests of all lists that have changed since its last call. The first list for a
 * kind of client does not count as a change. Health changes are ignored.
 */
export function createListTracker(server: Pick<UpstreamServer, 'kinds'>): () => readonly string[] {
  const before = new Map<string, string>()
  return () =>
    [...server.kinds()].flatMap(([kind, source]) => {
      const digest = listDigest(source.entries())
      const changed = (before.get(kind) ?? digest) !== digest
      before.set(kind, digest)
      return changed ? [digest] : []
    })
}
