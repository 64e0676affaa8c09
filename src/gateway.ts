import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { descriptorStore } from './catalog/persistence.ts'
import { createCatalogs } from './catalog/profiles.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Config, HttpConfig, ServerConfig } from './config/schema.ts'
import type { Access } from './core/access.ts'
import type { Caller } from './core/call.ts'
import { type Clock, systemClock } from './core/clock.ts'
import type { Log } from './core/log.ts'
import type { Source } from './core/source.ts'
import { createPipeline } from './pipeline/index.ts'
import { createApprovals } from './policy/approvals.ts'
import { argumentValidator } from './policy/arguments/validate.ts'
import { createPolicy } from './policy/decide.ts'
import { policyDoubts } from './policy/doubts.ts'
import type { Explanation } from './policy/explanation.ts'
import { compileGuards } from './policy/guards/index.ts'
import { compileLimits } from './policy/limits/compile.ts'
import { createAuthenticate } from './serve/authenticate/index.ts'
import { type HttpDoor, openHttpDoor } from './serve/http.ts'
import { serveStdio } from './serve/stdio.ts'
import { keptAuditKey } from './stores/audit-key.ts'
import { memoryBuckets } from './stores/buckets.ts'
import { createKeys } from './stores/keys.ts'
import { keptSeal } from './stores/seal.ts'
import { keptToken } from './stores/token.ts'
import { openAuditLog } from './telemetry/audit/log.ts'
import { describeArguments } from './telemetry/redact/describe.ts'
import { createRedactor } from './telemetry/redact/redactor.ts'
import { secretsOf } from './telemetry/redact/secrets.ts'
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
  /** The same as an agent of their choice. */
  localAs(agent: string | undefined): Caller
  /** What clients must send over HTTP; undefined when nothing is asked of them. */
  readonly token: string | undefined
  /** Whether an agent may use a tool, and by which rule; the tool in any spelling. Names near misses of either. */
  why(agent: string, tool: string): Promise<Why>
  /** Asks every server again what it offers; settles when each has answered or failed. */
  refresh(): Promise<void>
  /** Opens the HTTP door. */
  listen(): Promise<HttpDoor>
  /** Serves one client over a pair of streams, until its input ends. */
  stdio(input: Readable, output: Writable, agent?: string): Promise<void>
}

/** A decision with all that led to it. */
export interface Why extends Explanation {
  readonly agent: string
  readonly server: string
  readonly tool: string
}

/** The composition root: the only place that knows everybody. */
export async function createGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { config } = loaded
  const { log, clock = systemClock } = options
  const warnings = [...loaded.warnings, ...policyDoubts(config)]
  for (const warning of warnings) log.warn({}, warning)
  for (const { key, feature } of loaded.inactive) log.warn({ key, feature }, `${key} is not active yet`)

  await using open = new AsyncDisposableStack()
  const policy = createPolicy({ config })
  const token = await tokenFor(config)
  const redactor = createRedactor({
    secrets: secretsOf(config, token === undefined ? [] : [token]),
    keys: config.audit.redact,
  })
  const audit = open.use(
    await openAuditLog({
      folder: config.audit.path,
      sync: config.audit.sync,
      unrecordedReads: config.audit.unrecordedReads,
      retainMs: config.audit.retain,
      key: await keptAuditKey(config.stores.path),
      describe: describeArguments(config.audit.arguments, redactor),
      version,
      clock,
      log,
    }),
  )
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
    agentOf: policy.agentOf,
    turnedAway: (who) => pipeline.turnedAway(who),
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
    view: (caller) => pipeline.view(caller),
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
      asAgent: policy.actAs,
      status: (caller) => (mayInspect(config, caller) ? status() : undefined),
      clock,
    }),
    timeoutMs,
    clock,
  })

  const catalog = createCatalogs({
    sources: [meta, native, ...servers],
    naming: config.naming,
    listDeadlineMs: config.discovery.listDeadline,
    decide: policy.decide,
    exposure: ({ agent }) => policy.exposureOf(agent),
    clock,
    log,
  })
  const mayUseSome = (caller: Caller, server: Source) => {
    const entries = server.entries()
    return entries.length === 0 || entries.some((entry) => policy.decide(caller, entry).allowed)
  }
  const pipeline = createPipeline({
    view: (caller) => catalog.view(caller),
    audit,
    decide: policy.decide,
    validate: argumentValidator({ log }),
    guards: guardsOf(config.mcpServers, clock),
    limits: { limitsOf: compileLimits(config), buckets: memoryBuckets(), clock },
    needsApproval: createApprovals(config.mcpServers),
    clock,
    log,
  })

  await Promise.all(servers.map((server) => server.start()))
  const local: Caller = {
    agent: policy.agentOf({ agents: '*' }, undefined),
    agents: '*',
    principal: 'local',
    authenticated: true,
    admin: true,
    session: 'local',
    capabilities: {},
  }
  const localAs = (agent: string | undefined): Caller =>
    agent === undefined ? local : { ...local, agent: policy.agentOf(local, agent) }
  const info = { name: 'toolway', version }
  // All at once: each may have a stubborn process to wait for.
  open.defer(async () => void (await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))))
  for (const source of [catalog, meta, native]) open.use(source)

  const running = open.move()
  return {
    ...access,
    loaded,
    local,
    localAs,
    token,
    async why(agent, tool) {
      const asked = policy.agents.size === 0 ? agent : policy.agentOf({ agents: '*' }, agent)
      const { entry } = await catalog.view(local).resolve('tool', tool)
      const { server, name } = entry
      return { agent: asked, server, tool: name, ...policy.explain(asked, entry) }
    },
    async refresh() {
      await Promise.all(servers.map((server) => server.refresh()))
    },
    async listen() {
      // What is remembered is made ready to be sent before anybody can ask for it.
      catalog.view(local).page('tool')
      const keys = createKeys({ configured: config.auth.keys, folder: config.stores.path, clock, log })
      const authenticate = running.use(createAuthenticate({ token, keys, jwt: config.auth.jwt, clock, log }))
      const door = { config: config.server, authenticate, access, info, ready: () => true, clock, log }
      return running.use(await openHttpDoor(door))
    },
    stdio: (input, output, agent) => serveStdio({ input, output, access, info, caller: localAs(agent), clock, log }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  function status(): GatewayStatus {
    return {
      version,
      reload_status: { attempts: 0, successes: 0, last_error: null, last_error_at: null, warnings },
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

/** Loopback by any of its names, on our own port and path. */
function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

const mayInspect = (config: Config, caller: Caller): boolean => config.defaults.debug || caller.admin

const guardsOf = (servers: Config['mcpServers'], clock: Clock) =>
  new Map(
    Object.entries(servers).flatMap(([server, { guards }]) => {
      const check = compileGuards(guards, { server, clock })
      return check ? [[server, check] as const] : []
    }),
  )
