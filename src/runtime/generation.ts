import { captureJson, createRedactor, describeArguments, type Redactor } from '../audit/redact/redactor.ts'
import { secretsOf } from '../audit/redact/secrets.ts'
import { Catalogs } from '../catalog/catalog.ts'
import { type ServerOrigin, serverOrigin } from '../catalog/pins/pin-record.ts'
import { Pins, watchDefinitions } from '../catalog/pins/pins.ts'
import { scanResults } from '../catalog/scan/scan-results.ts'
import type { ChatOptions } from '../chat/chat.ts'
import { modelNames, visionModels } from '../chat/models/create-models.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { secretSettings } from '../config/schema-lookup.ts'
import { cachedTools } from '../config/warnings.ts'
import type { ListChangeListener } from '../core/access.ts'
import type { Chat } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Source } from '../core/source.ts'
import { createLazy, memoizeByObject } from '../lib/memoize.ts'
import { breakerConfigs } from '../pipeline/breaker.ts'
import type { Cache } from '../pipeline/cache/cache.ts'
import { cacheRules } from '../pipeline/cache/rules.ts'
import { capture } from '../pipeline/capture.ts'
import type { ServerGuards } from '../pipeline/checks.ts'
import { createPipeline, type Pipeline } from '../pipeline/index.ts'
import { retry } from '../pipeline/retry.ts'
import { compileCapture } from '../policy/agents.ts'
import { type ApprovalRules, createApprovalRules } from '../policy/approvals.ts'
import { argumentValidator, openChecker } from '../policy/arguments/validate.ts'
import { Policy } from '../policy/decide.ts'
import { compileGuards } from '../policy/guards/index.ts'
import { vetForModel } from '../policy/guards/url.ts'
import { compileConcurrency, compileLimits, compileResultLimits } from '../policy/limits.ts'
import { policyWarnings } from '../policy/policy-warnings.ts'
import { createAuthenticate } from '../serve/auth/authenticate.ts'
import type { Authenticate } from '../serve/auth/identity.ts'
import type { createJwtVerifier as CreateVerifier } from '../serve/auth/jwt.ts'
import { ApiKeyLookup } from '../stores/key-lookup.ts'
import { keptToken } from '../stores/secret-file.ts'
import { callLog, logsCalls } from '../telemetry/log.ts'
import { traceSettings } from '../telemetry/traces/settings.ts'
import type { Traces } from '../telemetry/traces/traces.ts'
import { hasOwnModel } from '../tools/inference/models.ts'
import type { Plugins } from '../tools/plugins/index.ts'
import type { LocalSkills } from '../tools/skills/local-skills.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import { createEngines, type Engines } from './engines.ts'
import { SharedParts } from './generations.ts'
import { createLocalSources, sharePlugins, shareSkills } from './local-sources.ts'
import { version } from './package-paths.ts'
import type { CurrentSettings, GenerationContext, ProcessState } from './process-state.ts'
import { buildServers, type ConfiguredServers, createListTracker, serversOf } from './upstream-servers.ts'

/**
 * Everything built from one configuration. Its life cycle is `prepareConfig`, `buildGeneration`, `startGeneration`, and
 * `disposeGeneration` once its last call has finished. Servers and other parts whose settings have not changed are
 * shared with the previous generation.
 */
export interface Generation extends PreparedConfig, Engines, Omit<CurrentSettings, 'loaded' | 'servers'> {
  readonly warnings: readonly string[]
  readonly policy: Policy
  /** Undefined if no result is ever cut or made compact. */
  readonly resultLimits: ReturnType<typeof compileResultLimits>
  readonly guards: ServerGuards
  readonly approvalRules: ApprovalRules
  readonly catalog: Catalogs
  readonly pipeline: Pipeline
  readonly servers: ConfiguredServers
  /** The skills in folders, if any are configured. */
  readonly skills: LocalSkills | undefined
  readonly inboundAuth: ReturnType<typeof createInboundAuth>
  readonly chat: Chat & AsyncDisposable
  /** The configuration's secrets, then those of earlier ones: calls, servers and records may still contain them. */
  readonly secrets: readonly string[]
}

/** How many secrets of earlier configurations are redacted. Each costs memory and search time. */
const maxReplaced = 128

/** A configuration together with everything that must be loaded asynchronously for it. */
export interface PreparedConfig {
  readonly loaded: LoadedConfig
  /** The bearer token that clients must send; undefined if none is required. */
  readonly token: string | undefined
  readonly pins: Pins
  /** A digest of each server's command or URL. Pins and other replicas use it to recognize the server. */
  readonly origins: ReadonlyMap<string, ServerOrigin>
  /** Creates the JWT verifier. Loaded only if `auth.jwt` is set. */
  readonly createVerifier: typeof CreateVerifier | undefined
  readonly plugins: Plugins
  readonly traces: Traces | undefined
  readonly traceWarnings: readonly string[]
  /** The servers, closed before the other parts. */
  readonly serverParts: SharedParts
  /** The other parts that generations share. */
  readonly parts: SharedParts
}

/** The asynchronous step before `buildGeneration`. Reuses the previous pins, plugins and traces where possible. */
export async function prepareConfig(
  loaded: LoadedConfig,
  context: Pick<ProcessState, 'orphanReaper' | 'clock' | 'log'>,
  before?: PreparedConfig,
): Promise<PreparedConfig> {
  const { auth, stores, policy, mcpServers, native } = loaded.config
  await using unfinished = new AsyncDisposableStack()
  const parts = unfinished.use(new SharedParts())
  const token = auth.token === 'generated' ? await keptToken(stores.common) : auth.token
  const provided = auth.jwt !== undefined && !auth.jwt.disabled
  const prepared = {
    loaded,
    token: token === 'none' ? undefined : token,
    origins: new Map(Object.entries(mcpServers).map(([name, server]) => [name, serverOrigin(server)])),
    createVerifier: provided ? (await import('../serve/auth/jwt.ts')).createJwtVerifier : undefined,
    pins: parts.share(before?.parts, 'pins', [policy.pins, stores.path], () => {
      return new Pins({ mode: policy.pins, folder: stores.path, ...context })
    }),
    ...(await shareTraces(loaded.config, context, parts, before)),
    plugins: await sharePlugins(
      native.plugins,
      { ...context, conceal: concealerOf(loaded, context, before) },
      parts,
      before,
    ),
    serverParts: new SharedParts(),
    parts,
  }
  unfinished.move()
  return prepared
}

/** The traces of a configuration. Loads the exporter only if traces are sent. */
async function shareTraces(
  { telemetry }: Config,
  { clock, log }: Pick<ProcessState, 'clock' | 'log'>,
  parts: SharedParts,
  before: PreparedConfig | undefined,
): Promise<Pick<PreparedConfig, 'traces' | 'traceWarnings'>> {
  const { settings, warnings: traceWarnings } = traceSettings(telemetry.traces, process.env)
  if (settings === undefined) return { traces: undefined, traceWarnings }
  const same = parts.reuse<Traces>(before?.parts, 'traces', settings)
  if (same) return { traces: same, traceWarnings }
  const { openTraces } = await import('../telemetry/traces/traces.ts')
  return { traces: parts.add('traces', settings, openTraces({ settings, version, clock, log })), traceWarnings }
}

/** Removes a configuration's secrets from text that is printed before its generation has started. */
function concealerOf(loaded: LoadedConfig, { log }: Pick<ProcessState, 'log'>, before: PreparedConfig | undefined) {
  let redactor: Redactor | undefined
  const conceal = (text: string): string => {
    redactor ??= createRedactor({
      secrets: secretsOf(loaded.config, secretSettings(loaded.config), loaded.secrets),
      keys: [],
    })
    return redactor.line(text)
  }
  if (before === undefined) log.conceal?.(conceal)
  return conceal
}

/** A function of its own, so that the closure keeps no previous generation in memory. */
const seenTokens =
  ({ oauth: { seen } }: GenerationContext) =>
  () =>
    seen.current

/** Builds a generation without side effects: if this throws, the previous generation stays in place unchanged. */
export function buildGeneration(prepared: PreparedConfig, context: GenerationContext, before?: Generation): Generation {
  const { loaded, token, pins, traceWarnings, parts, serverParts } = prepared
  const { config } = loaded
  const policy = new Policy({ config, quarantined: config.policy.pins === 'off' ? undefined : pins.denialOf })
  const servers = buildServers(config, context, serverParts, before)
  const engines = createEngines(config, context, parts, before)
  const limits = compileResultLimits(config)
  const skills = shareSkills(config, context, parts, before?.parts)
  const localSources = createLocalSources(
    { config, policy, engines, plugins: prepared.plugins, limits, skills },
    context,
  )
  const secrets = secretsToRedact(prepared, before)
  const redactor = createRedactor({ secrets, tokens: seenTokens(context), keys: config.audit.redact })
  const validate = argumentValidator({ log: context.log })
  const base = {
    ...prepared,
    ...engines,
    policy,
    resultLimits: limits,
    servers,
    skills,
    catalog: buildCatalog(
      [...localSources, ...serversOf({ servers })],
      { ...prepared, policy, resultLimits: limits },
      context,
    ),
    guards: guardsOf(config.mcpServers, context.clock),
    approvalRules: createApprovalRules(config),
    secrets,
    redactor,
  }
  return {
    ...base,
    warnings: [...loaded.warnings, ...policyWarnings(config), ...traceWarnings],
    pipeline: buildPipeline(base, validate, context),
    inboundAuth: parts.share(before?.parts, 'auth', [token, config.auth], () => createInboundAuth(prepared, context)),
    chat: buildChat(config, engines, validate, context),
    breakerOf: breakerConfigs(config),
    concurrencyOf: {
      servers: new Map(Object.entries(config.mcpServers).map(([name, { concurrency }]) => [name, concurrency])),
      agent: compileConcurrency(config.agents),
    },
    describe: describeArguments(config.audit.arguments, redactor),
  }
}

type ArgumentValidator = ReturnType<typeof argumentValidator>

function secretsToRedact({ loaded, token, traces }: PreparedConfig, before: Generation | undefined): readonly string[] {
  const { config, secrets } = loaded
  const headers = Object.values(traces?.settings.headers ?? {})
  const own = secretsOf(config, secretSettings(config), [token ?? '', ...secrets, ...headers])
  return [...own, ...(before?.secrets ?? []).filter((secret) => !own.includes(secret)).slice(0, maxReplaced)]
}

const buildCatalog = (
  sources: readonly Source[],
  { loaded: { config }, pins, policy, resultLimits }: PreparedConfig & Pick<Generation, 'policy' | 'resultLimits'>,
  { callerState, learning, clock, log }: GenerationContext,
): Catalogs =>
  new Catalogs({
    sources,
    naming: config.naming,
    listDeadlineMs: config.discovery.listDeadline,
    rules: {
      decide: policy.decide,
      closed: policy.closed,
      hideDenied: config.policy.hideDenied,
      exposure: ({ agent, endpoint }) => policy.exposureOf(agent, endpoint),
      auto: { threshold: config.defaults.autoThreshold, above: config.defaults.autoAbove },
      isPortable: policy.isPortable,
      isAlwaysLoaded: policy.isAlwaysLoaded,
      mayCutResults: resultLimits?.mayCut,
      scoreSources: (caller) => learning.expansion(caller, config.search),
    },
    callerState,
    flagsOf: pins.flagsOf,
    clock,
    log,
  })

type PipelineParts = PreparedConfig &
  Pick<Generation, 'policy' | 'resultLimits' | 'servers' | 'catalog' | 'guards' | 'approvalRules' | 'redactor'>

function buildPipeline(parts: PipelineParts, validate: ArgumentValidator, context: GenerationContext): Pipeline {
  const { policy, servers, catalog, guards, approvalRules, redactor, traces, loaded } = parts
  const { config } = loaded
  const { generations, learning, redactName, clock, log } = context
  const tracer = traces?.tracer({ redact: redactName, servers })
  const observers = [...context.observers, ...(tracer ? [tracer] : [])]
  if (config.search.learn) observers.push(learning.observer(config.search))
  if (logsCalls(log)) observers.push(callLog(log, redactName))
  return createPipeline({
    policy: {
      view: (caller) => catalog.view(caller),
      decide: policy.decide,
      hideDenied: config.policy.hideDenied,
      actAs: policy.actAs,
    },
    records: {
      watch: { observers, tracing: tracer, clock },
      capture: captureCalls(parts, context),
      audit: context.audit,
      refusals: context.refusals,
      denied: context.metrics.rejected,
      log,
    },
    checks: {
      validate,
      guards,
      limits: { limitsOf: compileLimits(config), buckets: context.buckets, clock },
      approval: {
        need: context.approvalNeed,
        isRevoked: context.isRevoked,
        approvals: context.approvals,
        waitMs: config.approvals.wait,
        redact: redactor.exceptKnown,
      },
      recheck: {
        decide({ caller, entry }) {
          const { current } = generations
          return current.policy === policy ? undefined : current.policy.decide(caller, entry)
        },
        unserved: ({ entry }) =>
          generations.current.policy === policy || !servers.has(entry.server)
            ? undefined
            : context.unserved(entry.server),
        guards: () => (generations.current.policy === policy ? undefined : generations.current.guards),
      },
    },
    attempts: {
      cache: context.cache.interceptor(cacheRules(config, approvalRules.ofServer)),
      scan: config.scan.results === 'off' ? undefined : scanResults({ mode: config.scan.results, log }),
      results: limitsOfResults(parts, context),
      retry: retry({ ...config.retry, clock, log }),
      breaker: context.breakers.step,
      bulkhead: context.bulkhead.step,
    },
    clock,
  })
}

function limitsOfResults({ loaded, resultLimits: limits }: PipelineParts, { results: store }: GenerationContext) {
  const { keep: keepMs, compact } = loaded.config.results
  return limits && { limits, store, keepMs, compact, accepts: acceptsOutput }
}

const outputChecker = memoizeByObject(openChecker)

/** Whether a value is valid for an output schema. A schema that cannot be checked accepts nothing. */
async function acceptsOutput(schema: Readonly<Record<string, unknown>>, value: unknown): Promise<boolean> {
  try {
    const checker = await outputChecker(schema)
    return !('unfit' in checker) && checker.accepts(value)
  } catch {
    return false
  }
}

/** Captures the content of calls; undefined if no server or agent opted in. */
function captureCalls({ loaded: { config }, redactor }: PipelineParts, context: GenerationContext) {
  const wants = compileCapture(config)
  if (!wants) return undefined
  return capture({
    wants,
    store: context.captures,
    json: (value, maxBytes) => captureJson(redactor, value, maxBytes),
    redact: redactor.text,
    maxBytesPerCall: config.capture.maxBytesPerCall,
    clock: context.clock,
    log: context.log,
  })
}

/** Process-lifetime listeners for a generation's events. */
export interface GenerationListeners {
  current(): Generation
  readonly cache: Pick<Cache, 'invalidate'>
  /** Called when the lists that callers see may have changed. */
  readonly changed: ListChangeListener
  /** Called for each server that the previous generation does not have. */
  serverAdded(name: string, server: UpstreamServer): void
  readonly log: Log
}

/** Starts the servers that are new in this generation and logs new warnings. */
export async function startGeneration(
  next: Generation,
  before: Generation | undefined,
  listeners: GenerationListeners,
): Promise<void> {
  const { servers, catalog, pins, origins, redactor } = next
  listeners.log.conceal?.(redactor.line)
  logNews(next, before, listeners.log)
  catalog.onChange(listeners.changed)
  if (pins !== before?.pins) watchPins(pins, listeners)
  // A command or URL may contain secrets that the configuration reads from elsewhere.
  const described = [...origins].map(([name, { hash, text }]) => [name, { hash, text: redactor.text(text) }] as const)
  pins.noteOrigins(new Map(described))
  if (before && pins !== before.pins) for (const server of serversOf(next)) pins.checkListing(server)
  const added = [...servers].filter(([name, { server }]) => before?.servers.get(name)?.server !== server)
  for (const [name, { server }] of added) watchServer(name, server, listeners)
  if (next.skills && next.skills !== before?.skills) watchSkills(next.skills, listeners)
  await Promise.all(added.map(([, { server }]) => server.start()))
}

/** Closes everything that is not shared with another generation. Rejects, after closing all of it, if a part failed. */
export async function disposeGeneration({ catalog, chat, serverParts, parts }: Generation): Promise<void> {
  const failures: unknown[] = []
  catalog[Symbol.dispose]()
  for (const part of [chat, serverParts, parts]) {
    try {
      await part[Symbol.asyncDispose]()
    } catch (thrown) {
      failures.push(...(thrown instanceof AggregateError ? thrown.errors : [thrown]))
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `could not close: ${failures.map(String).join('; ')}`)
}

function guardsOf(servers: Config['mcpServers'], clock: Clock) {
  const checks = Object.entries(servers).map(([server, { guards }]) => {
    return [server, compileGuards(guards, { server, clock })] as const
  })
  return new Map(checks.flatMap(([server, check]) => (check ? [[server, check]] : [])))
}

function createInboundAuth(
  { loaded: { config }, token, createVerifier }: PreparedConfig,
  { keyUsage: usage, clock, log }: GenerationContext,
) {
  const { auth, stores } = config
  const keys = new ApiKeyLookup({ configured: auth.keys, folder: stores.path, usage, clock, log })
  const verify = auth.jwt && createVerifier?.({ config: auth.jwt, clock, log })
  const authenticate: Authenticate & AsyncDisposable = createAuthenticate({ token, keys, verify, clock })
  const isRevoked = (principal: string) => principal.startsWith('key:') && !keys.isValid(principal.slice(4))
  const dispose = () => authenticate[Symbol.asyncDispose]()
  return { config: auth, authenticate, keysChanged: () => keys.changed(), isRevoked, [Symbol.asyncDispose]: dispose }
}

/** Loads the chat code on the first request, because most gateways only proxy calls. */
function buildChat(
  config: Config,
  { models: { byName: models } }: Engines,
  validate: ArgumentValidator,
  { access, clientToolState, clock, log }: GenerationContext,
): Generation['chat'] {
  const options: ChatOptions = {
    access,
    models,
    config: config.chat,
    validate,
    mayOffer: ({ server, name }) => server !== 'native' || hasOwnModel(config, name),
    clientToolState,
    vetImage: (url) => vetForModel(url, { allowPrivate: config.native.fetch.allowPrivate, clock }),
    clock,
    log,
  }
  const chat = createLazy(async () => new (await import('../chat/chat.ts')).ModelChat(options))
  return {
    models: () => modelNames(models, options.config),
    visionModels: () => visionModels(models),
    async *answer(request) {
      yield* (await chat.get()).answer(request)
    },
    async [Symbol.asyncDispose]() {
      await (await chat.loaded())?.[Symbol.asyncDispose]()
    },
  }
}

/** Logs the warnings and cached tools that are new compared to the previous configuration. */
function logNews({ warnings, loaded }: Generation, before: Generation | undefined, log: Log): void {
  const cached = cachedTools(loaded.config)
  if (cached.length > 0 && cached.join() !== (before && cachedTools(before.loaded.config).join())) {
    log.info({ tools: cached }, 'caching tool results')
  }
  for (const warning of warnings) if (!before?.warnings.includes(warning)) log.warn({}, warning)
}

// These are separate functions because closures created in one function share its scope: a listener that outlives its
// generation must not keep the previous generation in memory.

function watchSkills(skills: LocalSkills, { cache, current }: GenerationListeners): void {
  watchDefinitions(
    { ...listedSkills, name: skills.name, entries: () => skills.entries(), onChange: skills.onChange },
    () => current().pins,
  )
  skills.onChange(() => cache.invalidate(skills.name))
}

const listedSkills = { instructions: '', kinds: () => new Map() }

function watchPins(pins: Pins, { cache, current }: GenerationListeners): void {
  pins.onChange((changed) => {
    for (const name of changed) cache.invalidate(name)
    current().catalog.reconsider()
  })
}

function watchServer(name: string, server: UpstreamServer, { cache, current, serverAdded }: GenerationListeners): void {
  watchDefinitions(server, () => current().pins)
  const changedLists = createListTracker(server)
  server.onChange(() => {
    if (changedLists().length > 0) cache.invalidate(name)
  })
  serverAdded(name, server)
}
