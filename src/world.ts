import { isDeepStrictEqual } from 'node:util'
import type { Catalog } from './catalog/catalog.ts'
import { originOf, type ServerOrigin } from './catalog/pins/origin.ts'
import { createPins, type Pins } from './catalog/pins/pins.ts'
import { createCatalogs } from './catalog/profiles.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Config, HttpConfig, ServerConfig } from './config/schema.ts'
import type { Access } from './core/access.ts'
import type { Caller } from './core/call.ts'
import type { Clock } from './core/clock.ts'
import type { Log } from './core/log.ts'
import type { Lasting } from './lasting.ts'
import { type BreakerConfig, breakerConfigs } from './pipeline/breaker/config.ts'
import { cacheRules } from './pipeline/cache/rules.ts'
import { createPipeline, type Pipeline } from './pipeline/index.ts'
import { retry } from './pipeline/retry/retry.ts'
import { createApprovals } from './policy/approvals.ts'
import { argumentValidator } from './policy/arguments/validate.ts'
import { createPolicy, type Policy } from './policy/decide.ts'
import { policyDoubts } from './policy/doubts.ts'
import { compileGuards } from './policy/guards/index.ts'
import { compileLimits } from './policy/limits/compile.ts'
import { compileConcurrency } from './policy/limits/concurrency.ts'
import { type Authenticate, createAuthenticate } from './serve/authenticate/index.ts'
import type { createJwtVerifier as CreateVerifier } from './serve/authenticate/jwt.ts'
import { createKeys } from './stores/keys.ts'
import { keptToken } from './stores/token.ts'
import { callLog, logsCalls } from './telemetry/call-log.ts'
import { type Describe, describeArguments } from './telemetry/redact/describe.ts'
import { createRedactor, type Redactor } from './telemetry/redact/redactor.ts'
import { remember } from './telemetry/redact/remember.ts'
import { secretsOf } from './telemetry/redact/secrets.ts'
import { type ChosenTraces, chooseTraces } from './telemetry/traces/choose.ts'
import { toolSource } from './tools/define.ts'
import { type GatewayStatus, metaTools } from './tools/meta/index.ts'
import { nativeTools } from './tools/native/index.ts'
import { createConnect } from './upstream/connect.ts'
import { createServer, type Server } from './upstream/server.ts'
import { version } from './version.ts'

/** What a world stands in: what outlives it, and the ways to the present one. */
export interface Surroundings extends Lasting {
  readonly access: Access
  servedUri(server: string, uri: string): string
  /** Takes the secrets of the configuration in force out of a text. */
  redact(text: string): string
  /** The policy that is in force now. */
  policy(): Policy
  /** Nothing where this caller may not see it. */
  status(caller: Caller): GatewayStatus | undefined
}

/** A configuration with what had to be fetched for it: the token that clients must send, the pins of definitions. */
export interface Chosen extends ChosenTraces {
  readonly loaded: LoadedConfig
  readonly token: string | undefined
  readonly pins: Pins
  /** Where its servers come from. */
  readonly origins: ReadonlyMap<string, ServerOrigin>
  /** What checks the tokens of an identity provider; loaded only where there is one. */
  readonly createVerifier: typeof CreateVerifier | undefined
}

/** All that one configuration makes. Servers and credentials that have not changed are taken over from the one before. */
export interface World extends Chosen {
  readonly warnings: readonly string[]
  readonly policy: Policy
  readonly catalog: Catalog
  readonly pipeline: Pipeline
  readonly servers: ReadonlyMap<string, Tended>
  readonly entrance: Entrance
  /** Knows the secrets of the configuration. */
  readonly redactor: Redactor
  /** Takes them out of the names in every record; remembers what it has seen. */
  redactName(text: string): string
  /** What is written down of arguments. */
  readonly describe: Describe
  readonly breakerOf: (server: string) => BreakerConfig | undefined
  /** Calls in flight, by server and by agent. */
  readonly concurrencyOf: {
    readonly servers: ReadonlyMap<string, number>
    readonly agent: (agent: string) => number | undefined
  }
}

/** A server and all that made it what it is. */
interface Tended {
  readonly server: Server
  readonly made: {
    readonly config: ServerConfig
    readonly timeoutMs: number
    readonly refreshMs: number
    readonly mode: string
    readonly health: Config['health']
  }
}

/** Who may come in, and the part of the configuration that says so. */
interface Entrance {
  readonly authenticate: Authenticate & AsyncDisposable
  readonly auth: Config['auth']
}

/** Fetches what a configuration needs. Pins go on where the same ones are wanted. */
export async function prepare(
  loaded: LoadedConfig,
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
  before?: World,
): Promise<Chosen> {
  const { auth, stores, policy, mcpServers } = loaded.config
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const origins = new Map(Object.entries(mcpServers).map(([name, server]) => [name, originOf(server)]))
  const known = before?.loaded.config
  const same = known?.policy.pins === policy.pins && known.stores.path === stores.path
  const pins = same && before ? before.pins : await createPins({ mode: policy.pins, folder: stores.path, clock, log })
  const provided = auth.jwt !== undefined && !auth.jwt.disabled
  const createVerifier = provided ? (await import('./serve/authenticate/jwt.ts')).createJwtVerifier : undefined
  const tracing = { env: process.env, before: before?.traces, version, clock, log }
  const traced = await chooseTraces(loaded.config.telemetry.traces, tracing)
  return { loaded, token: token === 'none' ? undefined : token, pins, origins, createVerifier, ...traced }
}

/** Builds the world of a configuration. Nothing in it moves before it is started, so that a failed one leaves no trace. */
export function buildWorld(chosen: Chosen, surroundings: Surroundings, before?: World): World {
  const { loaded, token, pins, traces, doubts } = chosen
  const { config } = loaded
  const { access, clock, log } = surroundings
  const guards = guardsOf(config.mcpServers, clock)
  const quarantines = config.policy.pins === 'quarantine'
  const policy = createPolicy({ config, ...(quarantines && { quarantined: pins.denialOf }) })
  const servers = tendAll(config, surroundings, before)
  const inProcess = { origin: 'native', timeoutMs: config.defaults.timeout, clock } as const
  const native = toolSource({
    ...inProcess,
    name: 'native',
    description: 'Tools built into Toolway',
    tools: nativeTools({ names: config.native.tools, clock }),
  })
  const meta = toolSource({
    ...inProcess,
    name: 'toolway',
    description: 'Finds and runs the tools of every server',
    tools: metaTools({ access, asAgent: policy.actAs, status: surroundings.status, clock }),
  })
  const catalog = createCatalogs({
    sources: [meta, native, ...[...servers.values()].map(({ server }) => server)],
    naming: config.naming,
    listDeadlineMs: config.discovery.listDeadline,
    decide: policy.decide,
    closed: policy.closed,
    exposure: ({ agent }) => policy.exposureOf(agent),
    flagsOf: pins.flagsOf,
    clock,
    log,
  })
  const secrets = secretsOf(config, [token ?? '', ...Object.values(traces?.settings.headers ?? {})])
  const redactor = createRedactor({ secrets, keys: config.audit.redact })
  const redactName = remember(redactor.text)
  const needsApproval = createApprovals(config.mcpServers)
  const tracer = traces?.tracer({ redact: redactName, servers })
  const observers = [...surroundings.observers, ...(tracer ? [tracer] : [])]
  if (logsCalls(log)) observers.push(callLog(log, redactName))
  const pipeline = createPipeline({
    view: (caller) => catalog.view(caller),
    watch: { observers, tracing: tracer, clock },
    audit: surroundings.audit,
    refusals: surroundings.refusals,
    decide: policy.decide,
    validate: argumentValidator({ log }),
    guards,
    limits: { limitsOf: compileLimits(config), buckets: surroundings.buckets, clock },
    needsApproval,
    recheck: (call) =>
      surroundings.policy() === policy ? undefined : surroundings.policy().decide(call.caller, call.entry),
    cache: surroundings.cache.interceptor(cacheRules(config, needsApproval)),
    retry: retry({ ...config.retry, clock }),
    breaker: surroundings.breakers.interceptor,
    bulkhead: surroundings.bulkhead.interceptor,
    clock,
  })
  const warnings = [...loaded.warnings, ...policyDoubts(config), ...doubts]
  return {
    ...chosen,
    warnings,
    policy,
    catalog,
    pipeline,
    servers,
    entrance: entranceOf(chosen, surroundings, before),
    breakerOf: breakerConfigs(config),
    concurrencyOf: {
      servers: new Map(Object.entries(config.mcpServers).map(([name, { concurrency }]) => [name, concurrency])),
      agent: compileConcurrency(config.agents),
    },
    redactor,
    redactName,
    describe: describeArguments(config.audit.arguments, redactor),
  }
}

/** The servers of a configuration, without Toolway itself. */
const configured = (config: Config, log: Log): string[] =>
  Object.entries(config.mcpServers).flatMap(([name, server]) => {
    if (!isOurselves(server, config.server)) return [name]
    log.warn({ server: name }, 'its url is our own endpoint; it is left out, since Toolway is not behind itself')
    return []
  })

/**
 * The servers of a world, those of the one before taken over where nothing has changed. A function of its own, because
 * whatever lives as long as a world must not hold on to the one before it.
 */
const tendAll = (config: Config, surroundings: Surroundings, before: World | undefined): ReadonlyMap<string, Tended> =>
  new Map(configured(config, surroundings.log).map((name) => [name, tend(name, config, surroundings, before)]))

function tend(name: string, config: Config, surroundings: Surroundings, before: World | undefined): Tended {
  const server = config.mcpServers[name] as ServerConfig
  const timeoutMs = config.defaults.timeout
  const refreshMs = server.refresh ?? config.discovery.refresh
  const { health } = config
  const made = { config: server, timeoutMs, refreshMs, mode: config.discovery.mode, health }
  const known = before?.servers.get(name)
  if (known && isDeepStrictEqual(known.made, made)) return known
  const { store, seal, leftovers, clock, log } = surroundings
  return {
    made,
    server: createServer({
      name,
      config: server,
      timeoutMs,
      refreshMs,
      discovery: config.discovery.mode,
      health,
      breaker: () => surroundings.breakers.stateOf(name).state,
      store,
      servedUri: (uri) => surroundings.servedUri(name, uri),
      connect: createConnect({
        name,
        config: server,
        identity: { name: 'toolway', version },
        leftovers,
        redact: surroundings.redact,
        clock,
        log,
      }),
      seal,
      // What an operator has turned off stays off, however its configuration changes.
      paused: known?.server.control.paused ?? false,
      clock,
      log,
    }),
  }
}

function entranceOf(
  { loaded: { config }, token, createVerifier }: Chosen,
  surroundings: Surroundings,
  before: World | undefined,
): Entrance {
  const { auth, stores } = config
  const { clock, log } = surroundings
  if (before && before.token === token && isDeepStrictEqual(before.entrance.auth, auth)) return before.entrance
  const keys = createKeys({ configured: auth.keys, folder: stores.path, clock, log })
  const verify = auth.jwt && createVerifier?.({ config: auth.jwt, clock, log })
  return { auth, authenticate: createAuthenticate({ token, keys, verify, clock }) }
}

/** Loopback by any of its names, on our own port and path. */
function isOurselves(server: ServerConfig, { port, path }: HttpConfig): boolean {
  if (server.transport === 'stdio' || port === 0) return false
  const { hostname, port: theirs, pathname } = new URL(server.url)
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return loopback && Number(theirs) === port && [path, `${path}/stream`].includes(pathname)
}

const guardsOf = (servers: Config['mcpServers'], clock: Clock) =>
  new Map(
    Object.entries(servers).flatMap(([server, { guards }]) => {
      const check = compileGuards(guards, { server, clock })
      return check ? [[server, check] as const] : []
    }),
  )
