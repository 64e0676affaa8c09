import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { descriptorStore } from './catalog/persistence.ts'
import { createCatalogs } from './catalog/profiles.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Config, HttpConfig, ServerConfig } from './config/schema.ts'
import type { Access, ServerSummary } from './core/access.ts'
import type { Caller } from './core/call.ts'
import { type Clock, systemClock } from './core/clock.ts'
import { ToolwayError } from './core/errors.ts'
import type { Log } from './core/log.ts'
import type { Source } from './core/source.ts'
import { createPipeline } from './pipeline/index.ts'
import { createPolicy } from './policy/decide.ts'
import { type HttpDoor, serveHttp } from './serve/http.ts'
import { serveStdio } from './serve/stdio.ts'
import { keptSeal } from './stores/seal.ts'
import { keptToken } from './stores/token.ts'
import { toolSource } from './tools/define.ts'
import { type GatewayStatus, metaTools } from './tools/meta/index.ts'
import { nativeTools } from './tools/native/index.ts'
import { createConnect } from './upstream/connect.ts'
import { joinOffers } from './upstream/offers.ts'
import { createServer } from './upstream/server.ts'
import { version } from './version.ts'

export interface GatewayOptions {
  readonly log: Log
  readonly clock?: Clock
}

/** Toolway as one object: the way in for calls, and the doors that lead to it. */
export interface Gateway extends Access, AsyncDisposable {
  readonly loaded: LoadedConfig
  /** The user of this machine, who needs no credential. */
  readonly local: Caller
  /** What clients must send over HTTP; undefined when nothing is asked of them. */
  readonly token: string | undefined
  /** Asks every server again what it offers; settles when each has answered or failed. */
  refresh(): Promise<void>
  /** Opens the HTTP door. */
  listen(): Promise<HttpDoor>
  /** Serves one client over a pair of streams, until its input ends. */
  stdio(input: Readable, output: Writable): Promise<void>
}

/** The composition root: the only place that knows everybody. */
export async function createGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { config } = loaded
  const { log, clock = systemClock } = options
  for (const warning of loaded.warnings) log.warn({}, warning)
  for (const { key, feature } of loaded.inactive) log.warn({ key, feature }, `${key} is not active yet`)

  const seal = await keptSeal(config.stores.path)
  const store = descriptorStore(join(config.stores.path, 'catalog'), log)
  const others = Object.entries(config.mcpServers).filter(([name, server]) => {
    if (!isOurselves(server, config.server)) return true
    log.warn({ server: name }, 'its url is our own endpoint; it is left out, since Toolway is not behind itself')
    return false
  })
  const servers = others.map(([name, server]) =>
    createServer({
      name,
      config: server,
      timeoutMs: config.defaults.timeout,
      refreshMs: server.refresh ?? config.discovery.refresh,
      discovery: config.discovery.mode,
      store,
      servedUri: (uri) => catalog.servedUri(name, uri),
      connect: createConnect({ name, config: server, identity: { name: 'toolway', version }, clock, log }),
      seal,
      clock,
      log,
    }),
  )
  const timeoutMs = config.defaults.timeout
  const access: Access = {
    handle: (call) => pipeline.handle(call),
    complete: (call) => pipeline.complete(call),
    relay: (method, call) => pipeline.relay(method, call),
    subscribe: (caller, served, updated) => pipeline.subscribe(caller, served, updated),
    offers: (caller) => joinOffers(servers.filter((server) => mayUseSome(caller, server))),
    inform: (caller, method) => {
      for (const server of servers) server.inform(caller, method)
    },
    left: (caller) => {
      for (const server of servers) server.left(caller)
    },
    view: (caller) => catalog.view(caller),
    onChange: (listener) => catalog.onChange(listener),
  }
  const native = toolSource({
    name: 'native',
    origin: 'native',
    description: 'Tools built into Toolway',
    tools: nativeTools({ names: config.native.tools, clock }),
    timeoutMs,
    clock,
  })
  const meta = toolSource({
    name: 'toolway',
    origin: 'native',
    description: 'Finds and runs the tools of every server',
    tools: metaTools({
      access,
      asAgent,
      behind: () => [native, ...servers].map(summary),
      status: (caller) => (mayInspect(config, caller) ? status() : undefined),
      clock,
    }),
    timeoutMs,
    clock,
  })

  const decide = createPolicy(config.policy)
  const catalog = createCatalogs({
    sources: [meta, native, ...servers],
    naming: config.naming,
    listDeadlineMs: config.discovery.listDeadline,
    mayUse: (caller, entry) => decide(caller, entry).allowed,
    exposure: () => config.defaults.expose,
    clock,
    log,
  })
  const mayUseSome = (caller: Caller, server: Source) => {
    const entries = server.entries()
    return entries.length === 0 || entries.some((entry) => decide(caller, entry).allowed)
  }
  const pipeline = createPipeline({ decide, clock, log })

  // The meta-tools' descriptions say what is behind them, so they change with it.
  for (const server of servers) server.onChange(() => void meta.refresh())
  await Promise.all(servers.map((server) => server.start()))
  const token = await tokenFor(config)
  const local: Caller = {
    agent: 'default',
    agents: '*',
    principal: 'local',
    authenticated: true,
    admin: true,
    session: 'local',
    capabilities: {},
  }
  const info = { name: 'toolway', version }
  const open = new AsyncDisposableStack()
  // All at once: each may have a stubborn process to wait for.
  open.defer(async () => void (await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))))
  for (const source of [catalog, meta, native]) open.use(source)

  return {
    ...access,
    loaded,
    local,
    token,
    async refresh() {
      await Promise.all(servers.map((server) => server.refresh()))
    },
    async listen() {
      // What is remembered is made ready to be sent before anybody can ask for it.
      access.view(local).page('tool')
      return open.use(await serveHttp({ config: config.server, token, access, info, ready: () => true, clock, log }))
    },
    stdio: (input, output) => serveStdio({ input, output, access, info, caller: local, clock, log }),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }

  function status(): GatewayStatus {
    return {
      version,
      reload_status: { attempts: 0, successes: 0, last_error: null, last_error_at: null, warnings: loaded.warnings },
      policy_state: {
        agents: Object.keys(config.agents),
        default_agent: config.defaults.agent ?? null,
        deny_on_missing_agent: config.defaults.denyOnMissingAgent,
      },
      config_paths: loaded.files.map(({ path }) => path),
    }
  }
}

const tokenFor = async ({ auth, stores }: Config): Promise<string | undefined> => {
  if (auth.token === 'none') return undefined
  return auth.token === 'generated' ? keptToken(stores.common) : auth.token
}

const summary = (source: Source): ServerSummary => ({
  name: source.name,
  status: source.status(),
  tools: source.entries().filter(({ kind }) => kind === 'tool').length,
})

/** Loopback by any of its names, on our own port and path. */
function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

const mayInspect = (config: Config, caller: Caller): boolean => config.defaults.debug || caller.admin

/** There is one agent so far; naming another one is a mistake that must not pass unnoticed. */
function asAgent(caller: Caller, agent: string | undefined): Caller {
  if (agent === undefined || agent === caller.agent) return caller
  throw new ToolwayError('INVALID_AGENT_ID', `You are ${caller.agent} and may not act as ${agent}; leave agent_id out.`)
}
