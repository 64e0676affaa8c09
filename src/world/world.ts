import type { Catalog } from '../catalog/catalog.ts'
import { createCatalogs } from '../catalog/profiles.ts'
import { createAlikeNames } from '../catalog/scan/alike.ts'
import { scanResults } from '../catalog/scan/results.ts'
import type { Config } from '../config/schema.ts'
import type { Chat } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import { type BreakerConfig, breakerConfigs } from '../pipeline/breaker/breaker.ts'
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
import { callLog, logsCalls } from '../telemetry/call-log.ts'
import { type Describe, describeArguments } from '../telemetry/redact/describe.ts'
import { createRedactor, type Redactor } from '../telemetry/redact/redactor.ts'
import { remember } from '../telemetry/redact/remember.ts'
import { secretsOf } from '../telemetry/redact/secrets.ts'
import { createEngines, type Engines } from './engines.ts'
import { type Entrance, entranceOf } from './entrance.ts'
import { lazyChat } from './lazy-chat.ts'
import { ownSources } from './own-sources.ts'
import type { Chosen } from './prepare.ts'
import { type Servers, serversOf, tendAll } from './servers.ts'
import type { Surroundings } from './surroundings.ts'

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
