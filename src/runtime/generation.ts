import { isDeepStrictEqual } from 'node:util'
import { createRedactor, type Describe, describeArguments, type Redactor, remember } from '../audit/redact/redactor.ts'
import { secretsOf } from '../audit/redact/secrets.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { ChangeListener } from '../catalog/changes.ts'
import { originOf, type ServerOrigin } from '../catalog/pins/origin.ts'
import { createPins, type Pins } from '../catalog/pins/pins.ts'
import { watchDefinitions } from '../catalog/pins/watch-definitions.ts'
import { createCatalogs } from '../catalog/profiles.ts'
import { createAlikeNames } from '../catalog/scan/alike.ts'
import { scanResults } from '../catalog/scan/results.ts'
import type { ChatOptions } from '../chat/chat.ts'
import { modelNames } from '../chat/models/create-models.ts'
import { cachedTools } from '../config/cached-tools.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Chat } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type BreakerConfig, breakerConfigs } from '../pipeline/breaker/breaker.ts'
import type { Cache } from '../pipeline/cache/cache.ts'
import { cacheRules } from '../pipeline/cache/rules.ts'
import { createPipeline, type Pipeline } from '../pipeline/index.ts'
import { retry } from '../pipeline/retry.ts'
import { createApprovals } from '../policy/approvals.ts'
import { argumentValidator } from '../policy/arguments/validate.ts'
import { createPolicy, type Policy } from '../policy/decide.ts'
import { policyDoubts } from '../policy/doubts.ts'
import { compileGuards } from '../policy/guards/index.ts'
import { compileLimits } from '../policy/limits/compile.ts'
import { compileConcurrency } from '../policy/limits/concurrency.ts'
import { type Authenticate, createAuthenticate } from '../serve/authenticate/index.ts'
import type { createJwtVerifier as CreateVerifier } from '../serve/authenticate/jwt.ts'
import { createKeys } from '../stores/keys.ts'
import { keptToken } from '../stores/token.ts'
import { callLog, logsCalls } from '../telemetry/log.ts'
import { type ChosenTraces, chooseTraces } from '../telemetry/traces/settings.ts'
import type { Plugins } from '../tools/plugins/index.ts'
import type { Server } from '../upstream/server.ts'
import type { Made, Surroundings } from './context.ts'
import { createEngines, type Engines } from './engines.ts'
import { choosePlugins, ownSources } from './local-sources.ts'
import { version } from './package-paths.ts'
import type { Lasting } from './process-state.ts'
import { createListsChanged, type Servers, serversOf, tendAll } from './upstream-servers.ts'

/** All that one configuration makes. Servers and credentials that have not changed are taken over from the one before. */
export interface World extends Chosen, Engines {
  readonly warnings: readonly string[]
  readonly policy: Policy
  readonly catalog: Catalog
  readonly pipeline: Pipeline
  readonly servers: Servers
  readonly entrance: Entrance
  readonly chat: Chat & AsyncDisposable
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

/** Builds the world of a configuration. Nothing in it moves before it is started, so that a failed one leaves no trace. */
export function buildWorld(chosen: Chosen, surroundings: Surroundings, before?: World): World {
  const { loaded, token, pins, traces, doubts } = chosen
  const { config } = loaded
  const { access, clock, log } = surroundings
  const guards = guardsOf(config.mcpServers, clock)
  const quarantines = config.policy.pins === 'quarantine'
  const policy = createPolicy({ config, ...(quarantines && { quarantined: pins.denialOf }) })
  const servers = tendAll(config, surroundings, before?.servers)
  const engines = createEngines(config, surroundings, before)
  const own = ownSources({ config, policy, engines, plugins: chosen.plugins.value }, surroundings)
  const alikeFlags = createAlikeNames(serversOf({ servers }), log)
  const catalog = createCatalogs({
    sources: [...own, ...[...servers.values()].map(({ server }) => server)],
    naming: config.naming,
    listDeadlineMs: config.discovery.listDeadline,
    decide: policy.decide,
    closed: policy.closed,
    hideDenied: config.policy.hideDenied,
    exposure: ({ agent }) => policy.exposureOf(agent),
    flagsOf: (entry) => [...pins.flagsOf(entry), ...alikeFlags(entry)],
    clock,
    log,
  })
  const secrets = secretsOf(config, [token ?? '', ...loaded.secrets, ...Object.values(traces?.settings.headers ?? {})])
  const redactor = createRedactor({ secrets, tokens: surroundings.oauth.tokens, keys: config.audit.redact })
  const redactName = remember(redactor.text)
  const needsApproval = createApprovals(config.mcpServers)
  const tracer = traces?.tracer({ redact: redactName, servers })
  const observers = [...surroundings.observers, ...(tracer ? [tracer] : [])]
  if (logsCalls(log)) observers.push(callLog(log, redactName))
  const validate = argumentValidator({ log })
  const pipeline = createPipeline({
    view: (caller) => catalog.view(caller),
    watch: { observers, tracing: tracer, clock },
    audit: surroundings.audit,
    refusals: surroundings.refusals,
    decide: policy.decide,
    hideDenied: config.policy.hideDenied,
    actAs: policy.actAs,
    validate,
    guards,
    limits: { limitsOf: compileLimits(config), buckets: surroundings.buckets, clock },
    needsApproval,
    recheck: (call) =>
      surroundings.policy() === policy ? undefined : surroundings.policy().decide(call.caller, call.entry),
    cache: surroundings.cache.interceptor(cacheRules(config, needsApproval)),
    scan: config.scan.results === 'off' ? undefined : scanResults({ mode: config.scan.results, log }),
    retry: retry({ ...config.retry, clock }),
    breaker: surroundings.breakers.interceptor,
    bulkhead: surroundings.bulkhead.interceptor,
    clock,
    log,
  })
  const warnings = [...loaded.warnings, ...policyDoubts(config), ...doubts]
  return {
    ...chosen,
    ...engines,
    warnings,
    policy,
    catalog,
    pipeline,
    servers,
    entrance: entranceOf(chosen, surroundings, before),
    chat: lazyChat({
      ...{ access, models: engines.models.value.byName, config: config.chat, validate },
      ...{ handovers: surroundings.handovers, clock, log },
    }),
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

const guardsOf = (servers: Config['mcpServers'], clock: Clock) =>
  new Map(
    Object.entries(servers).flatMap(([server, { guards }]) => {
      const check = compileGuards(guards, { server, clock })
      return check ? [[server, check] as const] : []
    }),
  )

/** A configuration with what had to be fetched for it: the token that clients must send, the pins of definitions. */
export interface Chosen extends ChosenTraces {
  readonly loaded: LoadedConfig
  readonly token: string | undefined
  readonly pins: Pins
  /** Where its servers come from. */
  readonly origins: ReadonlyMap<string, ServerOrigin>
  /** What checks the tokens of an identity provider; loaded only where there is one. */
  readonly createVerifier: typeof CreateVerifier | undefined
  readonly plugins: Made<Plugins>
}

/** Fetches what a configuration needs. Pins go on where the same ones are wanted. */
export async function prepare(
  loaded: LoadedConfig,
  { clock, log }: Pick<Lasting, 'clock' | 'log'>,
  before?: Chosen,
): Promise<Chosen> {
  const { auth, stores, policy, mcpServers } = loaded.config
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const origins = new Map(Object.entries(mcpServers).map(([name, server]) => [name, originOf(server)]))
  const known = before?.loaded.config
  const same = known?.policy.pins === policy.pins && known.stores.path === stores.path
  const pins = same && before ? before.pins : await createPins({ mode: policy.pins, folder: stores.path, clock, log })
  const provided = auth.jwt !== undefined && !auth.jwt.disabled
  const createVerifier = provided ? (await import('../serve/authenticate/jwt.ts')).createJwtVerifier : undefined
  const tracing = { env: process.env, before: before?.traces, version, clock, log }
  const traced = await chooseTraces(loaded.config.telemetry.traces, tracing)
  const plugins = await choosePlugins(loaded.config.native.plugins, { clock, log }, before?.plugins)
  return { loaded, token: token === 'none' ? undefined : token, pins, origins, createVerifier, plugins, ...traced }
}

/** Who may come in, and the part of the configuration that says so. */
interface Entrance {
  readonly authenticate: Authenticate & AsyncDisposable
  readonly auth: Config['auth']
}

/** Taken over from the world before where nothing has changed about it. */
function entranceOf(
  { loaded: { config }, token, createVerifier }: Chosen,
  surroundings: Surroundings,
  before: (Chosen & { readonly entrance: Entrance }) | undefined,
): Entrance {
  const { auth, stores } = config
  const { clock, log } = surroundings
  if (before && before.token === token && isDeepStrictEqual(before.entrance.auth, auth)) return before.entrance
  const keys = createKeys({ configured: auth.keys, folder: stores.path, clock, log })
  const verify = auth.jwt && createVerifier?.({ config: auth.jwt, clock, log })
  return { auth, authenticate: createAuthenticate({ token, keys, verify, clock }) }
}

/** A chat that is loaded when somebody first asks something: most gateways only carry calls. */
function lazyChat(options: ChatOptions): Chat & AsyncDisposable {
  let opening: Promise<Chat & AsyncDisposable> | undefined
  const open = () => {
    opening ??= import('../chat/chat.ts').then(({ createChat }) => createChat(options))
    return opening
  }
  return {
    models: () => modelNames(options.models, options.config),
    async *answer(request) {
      yield* (await open()).answer(request)
    },
    async [Symbol.asyncDispose]() {
      await (await opening)?.[Symbol.asyncDispose]()
    },
  }
}

/** Closes what a world has and none of those that still live has taken over. */
export async function endWorld(world: World, living: readonly World[]) {
  const { catalog, servers, entrance, pins, traces, chat, models, executor, plugins } = world
  catalog[Symbol.dispose]()
  await chat[Symbol.asyncDispose]()
  const gone = [...servers.values()].filter((one) => !living.some((world) => [...world.servers.values()].includes(one)))
  // All at once: each may have a stubborn process to wait for.
  await Promise.all(gone.map(({ server }) => server[Symbol.asyncDispose]()))
  for (const key of ['models', 'executor', 'plugins'] as const) {
    const { value } = { models, executor, plugins }[key]
    if (!living.some((other) => other[key].value === value)) await value[Symbol.asyncDispose]()
  }
  if (!living.some((world) => world.entrance === entrance)) await entrance.authenticate[Symbol.asyncDispose]()
  if (!living.some((world) => world.pins === pins)) await pins[Symbol.asyncDispose]()
  if (!living.some((world) => world.traces === traces)) await traces?.[Symbol.asyncDispose]()
}

/** What hears of whatever happens in a world, and outlives it. */
export interface Watching {
  present(): World
  readonly cache: Pick<Cache, 'invalidate'>
  /** Lists of callers may have changed. */
  readonly changed: ChangeListener
  /** A server that was not there before. */
  added(name: string, server: Server): void
  readonly log: Log
}

/** Starts what is new in a world, and says what there is to say about it. */
export async function beginWorld(next: World, before: World | undefined, watching: Watching): Promise<void> {
  const { servers, catalog, pins, origins } = next
  watching.log.conceal?.(next.redactor.line)
  announce(next, before, watching.log)
  catalog.onChange(watching.changed)
  if (pins !== before?.pins) watchPins(pins, watching)
  pins.noteOrigins(origins)
  const added = [...servers].filter(([name, { server }]) => before?.servers.get(name)?.server !== server)
  for (const [name, { server }] of added) watchServer(name, server, watching)
  await Promise.all(added.map(([, { server }]) => server.start()))
}

/** Says what there is to say about a configuration, as far as it was not said about the one before. */
function announce({ warnings, loaded }: World, before: World | undefined, log: Log): void {
  const cached = cachedTools(loaded.config)
  if (cached.length > 0 && cached.join() !== (before && cachedTools(before.loaded.config).join())) {
    log.info({ tools: cached }, 'results of these tools are cached')
  }
  for (const warning of warnings) if (!before?.warnings.includes(warning)) log.warn({}, warning)
}

// What listens for long is set up in functions of its own: closures of one function share all that any of them
// holds, and nothing that outlives a world may hold the one before it.

function watchPins(pins: Pins, { cache, present }: Watching): void {
  pins.onChange((changed) => {
    for (const name of changed) cache.invalidate(name)
    present().catalog.reconsider()
  })
}

function watchServer(name: string, server: Server, { cache, present, added }: Watching): void {
  watchDefinitions(server, { check: (entry) => present().pins.check(entry) })
  const listsChanged = createListsChanged(server)
  server.onChange(() => {
    if (listsChanged()) cache.invalidate(name)
  })
  added(name, server)
}
