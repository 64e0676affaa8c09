import { join } from 'node:path'
import { openSpool } from '../audit/archive/spool.ts'
import { redacted } from '../audit/redact/conceal.ts'
import type { DescribeArguments, Redactor } from '../audit/redact/redactor.ts'
import { type AuditLog, openAuditLog } from '../audit/write/audit-log.ts'
import { marksFolder } from '../audit/write/head.ts'
import { createCallerState } from '../catalog/catalog.ts'
import { descriptorStore } from '../catalog/descriptor-store.ts'
import { SearchLearning } from '../catalog/search/learning.ts'
import { ClientToolState } from '../chat/client-tool-state.ts'
import { createProfiles } from '../chat/models/server-profile.ts'
import type { Config } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { ApprovalNeed } from '../core/approval.ts'
import type { Call, Caller } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { createLeases, type Membership } from '../core/cluster.ts'
import type { ToolwayError } from '../core/errors.ts'
import { createBudgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import type { CacheLimits, CacheUsage } from '../core/stores.ts'
import { members } from '../json/json-text.ts'
import { removeLeftovers } from '../lib/files.ts'
import { memoize } from '../lib/memoize.ts'
import { createSeal } from '../lib/seal.ts'
import { createApprovals } from '../pipeline/approvals.ts'
import { type BreakerConfig, createBreakers } from '../pipeline/breaker.ts'
import { bulkhead } from '../pipeline/bulkhead.ts'
import { cache } from '../pipeline/cache/cache.ts'
import type { ServerGuards } from '../pipeline/checks.ts'
import { Refusals } from '../pipeline/refusals.ts'
import type { Policy } from '../policy/decide.ts'
import { createOrphanReaper } from '../process/orphan-reaper.ts'
import { memoryBuckets } from '../stores/buckets.ts'
import { memoryCache } from '../stores/cache.ts'
import { memoryCaptures } from '../stores/captures.ts'
import { KeptResults } from '../stores/kept-results.ts'
import { KeyUsage } from '../stores/key-usage.ts'
import type { PostgresAudit, PostgresAuditOptions } from '../stores/postgres/audit.ts'
import type { RedisMembership } from '../stores/redis/cluster.ts'
import type { RedisStoresOptions } from '../stores/redis/stores.ts'
import { keptAuditKey, replicaSecret } from '../stores/secret-file.ts'
import { memoryTtlStore } from '../stores/ttl-store.ts'
import { createRecentCalls } from '../telemetry/calls/call-records.ts'
import { createMetrics } from '../telemetry/metrics/metrics.ts'
import type { Readings, ServerReading, StoreReading } from '../telemetry/metrics/readings.ts'
import { createStats } from '../telemetry/stats/stats.ts'
import type { Tool } from '../tools/define-tool.ts'
import type { GatewayStatus, StatusRefusal } from '../tools/meta/index.ts'
import { createStartQueue } from '../upstream/connection/reconnect.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import { SharedApprovals } from './approvals.ts'
import { openHistory } from './history.ts'
import { createServerOAuth } from './oauth-sign-in.ts'
import { version } from './package-paths.ts'
import { Rejections } from './rejections.ts'
import { ReloadHistory } from './reload.ts'
import type { WorkerProcess } from './workers/worker.ts'

/** Settings that a reload may change. They are read from the current generation. */
export interface CurrentSettings {
  readonly loaded: { readonly config: Config }
  readonly servers: ReadonlyMap<string, { readonly server: UpstreamServer }>
  readonly describe: DescribeArguments
  readonly breakerOf: (server: string) => BreakerConfig | undefined
  readonly concurrencyOf: {
    readonly servers: ReadonlyMap<string, number>
    readonly agent: (agent: string) => number | undefined
  }
  /** Removes the configuration's secrets, and those of earlier ones, from text. */
  readonly redactor: Redactor
}

interface ProcessStateOptions extends Required<Pick<Readings, 'sessions' | 'tokens'>> {
  /** Stores shared by the workers on one machine; `stores.redis` takes precedence. */
  readonly shared?: WorkerProcess | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Where the current settings are found. They are read in each call, so this is a field and not a function. */
interface Current {
  readonly current: CurrentSettings
}

/** State that outlives a configuration: open logs and stores, counters and caches. */
export type ProcessState = Awaited<ReturnType<typeof openProcessState>>

/** Opens the state with the first configuration's settings. Settings that a reload may change come from `generations`. */
export async function openProcessState(config: Config, generations: Current, options: ProcessStateOptions) {
  const { shared: workers, clock, log, sessions, tokens } = options
  const { stores } = config
  await removeLeftovers(stores.path)
  const redactName = memoize((name) => generations.current.redactor.text(name))
  await using open = new AsyncDisposableStack()
  const { archive, audit } = await openAuditTrail(config, generations, options, open)
  const stats = createStats({ clock, redact: redactName })
  const budgets = createBudgets()
  const captures = open.use(memoryCaptures(() => generations.current.loaded.config.capture, clock))
  const history = open.use(openHistory(config, { budgets, captures, redact: redactName, clock, log }))
  const calls = createRecentCalls({ clock, redact: redactName, onEnded: history?.add })
  const stored = await openStores(config, generations, options, open)
  const { redis, primary, shared, seal } = stored
  const cached = cache({ store: shared?.cache ?? memoryCache(cacheLimits(generations)), members, clock })
  const concurrency = bulkhead({ ...concurrencyLimits(generations), clock })
  budgets.register('calls', () => concurrency.stats().budgets.calls)
  budgets.register('queued_calls', () => concurrency.stats().budgets.queued)
  budgets.register('capture', captures.use)
  if (!redis) budgets.register('cache_bytes', () => cacheBytes(cached.stats(), generations.current.loaded.config.cache))
  /** Whether the stores shared with other processes can be reached. */
  const storeReadings = (): readonly StoreReading[] => [
    ...(redis ? [{ name: 'redis', up: redis.redis.up, problem: redis.redis.problem }] : []),
    ...(!redis && primary ? [{ name: 'workers', up: primary.up }] : []),
    ...(archive ? [archiveReading(archive)] : []),
    ...(history ? [{ name: 'history', up: history.trouble() === undefined, problem: history.trouble() }] : []),
  ]
  const reloads = new ReloadHistory()
  const readings = {
    ...{ load: concurrency.stats, budgets: budgets.report, cache: cached.stats, audit: audit.status },
    servers: () => [...generations.current.servers.values()].map(({ server }) => serverReading(server)),
    reloads: () => reloads.status(),
    ...{ sessions, tokens, stores: storeReadings },
  }
  const metrics = open.use(createMetrics({ version, clock, redact: redactName, readings }))
  const approvals = createApprovals({ budget: budgets.approvals, clock })
  const state = {
    audit,
    /** All replicas' audit records; undefined unless `stores.postgres` is set. */
    archive,
    cache: cached,
    bulkhead: concurrency,
    /** How much waits or is kept, per caller and in all. */
    budgets,
    /** This process's calls that wait for a person, and approvals for sessions. */
    approvals,
    /** Those of all workers and replicas. */
    sharedApprovals: open.use(new SharedApprovals({ approvals, pubSub: shared?.pubSub, clock, log })),
    callerState: createCallerState(clock, shared?.ttlStore),
    storeReadings,
    rejections: new Rejections(clock),
    reloads,
    metrics,
    /** The metrics of all workers; undefined if metrics are disabled. */
    metricsPages: config.telemetry.metrics ? (workers?.pages(metrics.page) ?? metrics.page) : undefined,
    stats,
    calls,
    /** The content of calls whose server or agent opted in to capturing. */
    captures,
    /** Statistics, calls and logins that survive a restart; undefined if disabled. */
    history,
    observers: [metrics.observer, stats.observer, calls.observer, ...(history ? [history.observer] : [])],
    /** Aggregates denials by principal. Opened after the audit log, to be closed first and write its last counts. */
    refusals: open.use(new Refusals({ audit, clock })),
    buckets: stored.buckets,
    breakers: open.use(createBreakers({ configOf: (server) => generations.current.breakerOf(server), clock, log })),
    seal,
    /** Membership among replicas or workers; undefined if this is the only process. */
    membership: shared?.membership as (Membership & Pick<RedisMembership, 'join'>) | undefined,
    /** Leases for resources that only one replica may hold. */
    leases: open.use(shared && createLeases(shared.membership)),
    pubSub: shared?.pubSub,
    /** Messages to and from the other workers of this gateway only; undefined if this process is not a worker. */
    workers: primary?.pubSub,
    oauth: createServerOAuth(redis?.safe, config, { clock, log }),
    /** A TTL store that several processes share; undefined if this is the only process. */
    ttlStore: shared?.ttlStore,
    /** The whole results of calls whose callers got a part. */
    results: open.use(new KeptResults({ budgets, shared: shared && { ttlStore: shared.ttlStore, seal }, clock })),
    /** Conversations that are waiting for results from client-side tools. */
    clientToolState: new ClientToolState(shared?.ttlStore ?? memoryTtlStore(clock), seal),
    /** The detected features of each model server. */
    profiles: createProfiles(),
    learning: open.use(createLearning(stores.path, generations, { clock, log })),
    keyUsage: open.use(new KeyUsage({ folder: stores.path, clock, log })),
    store: descriptorStore(join(stores.path, 'catalog'), log),
    starts: createStartQueue(clock),
    /** Records child processes, so that processes left behind by a killed gateway can be found and ended. */
    orphanReaper: open.use(createOrphanReaper(join(stores.path, 'processes'), log, clock)),
    /** Removes the current configuration's secrets from names. Memoized, because the same names recur in every record. */
    redactName,
    startedAt: clock.now(),
    clock,
    log,
  }
  const running = open.move()
  return { ...state, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

async function openAuditTrail(
  config: Config,
  generations: Current,
  { clock, log }: ProcessStateOptions,
  open: AsyncDisposableStack,
) {
  const { stores } = config
  let audit: AuditLog | undefined
  // Open the archive before the audit log, so that it is closed after the log and the last records are archived too.
  const archive = open.use(await openArchive(config, { lane: () => audit?.status().lane, clock, log }))
  audit = open.use(
    await openAuditLog({
      folder: config.audit.path,
      sync: config.audit.sync,
      unrecordedReads: config.audit.unrecordedReads,
      retainMs: config.audit.retain,
      copied: archive && ((lane) => archive.shipped(lane)),
      key: await keptAuditKey(stores.path),
      marks: marksFolder(stores.path, config.audit.path),
      describe: (args) => generations.current.describe(args),
      redactor: () => generations.current.redactor.text,
      version,
      clock,
      log,
    }),
  )
  return { archive, audit }
}

/** Opens the stores that this process shares with others, through Redis or the primary process. */
async function openStores(
  { stores }: Config,
  generations: Current,
  { shared: workers, clock, log }: ProcessStateOptions,
  open: AsyncDisposableStack,
) {
  const local = memoryBuckets()
  const secret = replicaSecret(stores.path)
  const sharing = { limits: cacheLimits(generations), local, clock, log }
  const primary = await workers?.open({ ...sharing, ownSecret: secret.own })
  const redis = open.use(await openRedis(stores, { ...sharing, secret, workers: primary?.membership }))
  const shared = redis ?? primary
  return {
    ...{ redis, primary, shared, buckets: shared?.buckets ?? local },
    seal: shared?.seal ?? createSeal(await secret.own()),
  }
}

function createLearning(
  folder: string,
  generations: Current,
  { clock, log }: Pick<ProcessStateOptions, 'clock' | 'log'>,
) {
  // The mark would be a word of every query with a secret.
  const redact = (text: string) => generations.current.redactor.text(text).replaceAll(redacted, ' ')
  return new SearchLearning({ folder, redact, clock, log })
}

function cacheBytes({ bytes: used, evicted: refused, largest = 0 }: CacheUsage, { maxBytes: limit }: CacheLimits) {
  return { used, limit, perCaller: limit / 2, largest, refused }
}

async function openRedis({ redis, key }: Config['stores'], options: Omit<RedisStoresOptions, 'url' | 'key'>) {
  if (redis === undefined || redis.disabled) return undefined
  const { openRedisStores } = await import('../stores/redis/stores.ts')
  return openRedisStores({ url: redis.url, key, ...options })
}

async function openArchive({ stores, audit }: Config, options: Pick<PostgresAuditOptions, 'lane' | 'clock' | 'log'>) {
  const { postgres } = stores
  if (postgres === undefined || postgres.disabled) return undefined
  const { openPostgresAudit } = await import('../stores/postgres/audit.ts')
  const { url, migrate } = postgres
  return openPostgresAudit({ url, migrate, spool: openSpool(audit.path), retainMs: audit.retain, ...options })
}

function archiveReading(archive: PostgresAudit) {
  const { up, behindRecords, behindSeconds } = archive.status()
  return { name: 'postgres', up, behind: { records: behindRecords, seconds: behindSeconds } }
}

function serverReading(server: UpstreamServer): ServerReading {
  const { health, breaker, findings = [] } = server.status()
  const { connections, restarts } = server.control
  return { name: server.name, health, breaker, connections, restarts, findings: findings.length }
}

const cacheLimits = (generations: Current) => ({
  get maxEntries() {
    return generations.current.loaded.config.cache.maxEntries
  },
  get maxBytes() {
    return generations.current.loaded.config.cache.maxBytes
  },
})

const concurrencyLimits = (generations: Current) => ({
  serverLimit: (server: string) => generations.current.concurrencyOf.servers.get(server),
  agentLimit: (agent: string) => generations.current.concurrencyOf.agent(agent),
  perClient: () => generations.current.loaded.config.limits.per === 'client',
  total: () => generations.current.loaded.config.limits.concurrency,
  queue: () => generations.current.loaded.config.limits.queue,
  isStarting: (server: string) => generations.current.servers.get(server)?.server.opening() === true,
})

/** Everything needed to build a generation: the process state and access to the current generation. */
export interface GenerationContext extends ProcessState {
  readonly access: Access
  servedUris(call: Call): (uri: string) => string
  redact(text: string): string
  /** For what applies to calls of earlier generations too. */
  readonly generations: { readonly current: { readonly policy: Policy; readonly guards: ServerGuards } }
  /** Whether the current rules require a person to approve a call. */
  approvalNeed(call: Call): ApprovalNeed | undefined
  /** Whether a principal's API key was revoked, or has expired. */
  isRevoked(principal: string): boolean
  /** Why the current configuration does not allow calls to a server; undefined if it does. */
  unserved(server: string): ToolwayError | undefined
  /** The gateway's state, or the rule that hides it from the caller. */
  status(caller: Caller): GatewayStatus | StatusRefusal
  /** Tools registered by the embedding program. They are served with the native ones. */
  readonly tools: readonly Tool[]
  /** Writes to standard output. Undefined if standard output is the connection to a client. */
  readonly print: ((text: string) => void) | undefined
}
