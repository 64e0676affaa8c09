import { join } from 'node:path'
import { openSpool } from '../audit/archive/spool.ts'
import type { DescribeArguments } from '../audit/redact/redactor.ts'
import { type AuditLog, openAuditLog } from '../audit/write/audit-log.ts'
import { marksFolder } from '../audit/write/head.ts'
import { descriptorStore } from '../catalog/descriptor-store.ts'
import { type ClientToolState, createClientToolState } from '../chat/client-tool-state.ts'
import { createProfiles } from '../chat/models/server-profile.ts'
import type { Config } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { ApprovalNeed } from '../core/approval.ts'
import { AppPages } from '../core/apps.ts'
import type { Call, Caller } from '../core/call.ts'
import type { CaptureStore } from '../core/captures.ts'
import type { Clock } from '../core/clock.ts'
import { createLeases, type Leases, type Membership, type PubSub } from '../core/cluster.ts'
import type { ToolwayError } from '../core/errors.ts'
import { type Budgets, createBudgets } from '../core/limits/budgets.ts'
import type { Log } from '../core/log.ts'
import type { Observer } from '../core/observer.ts'
import type { Buckets, CacheLimits, CacheUsage, DescriptorStore, TtlStore } from '../core/stores.ts'
import { members } from '../json/json-text.ts'
import { removeLeftovers } from '../lib/file-lock.ts'
import { createSeal, type Seal } from '../lib/seal.ts'
import { type Approvals, createApprovals } from '../pipeline/approvals.ts'
import { type BreakerConfig, type Breakers, createBreakers } from '../pipeline/breaker.ts'
import { type Bulkhead, bulkhead } from '../pipeline/bulkhead.ts'
import { type Cache, cache } from '../pipeline/cache/cache.ts'
import { Refusals } from '../pipeline/refusals.ts'
import type { ServerGuards } from '../pipeline/validate.ts'
import type { Policy } from '../policy/decide.ts'
import { createOrphanReaper, type OrphanReaper } from '../process/orphan-reaper.ts'
import { memoryBuckets } from '../stores/buckets.ts'
import { memoryCache } from '../stores/cache.ts'
import { memoryCaptures } from '../stores/captures.ts'
import { createKeyUsage, type KeyUsage } from '../stores/key-usage.ts'
import type { PostgresAudit, PostgresAuditOptions } from '../stores/postgres/audit.ts'
import type { RedisMembership } from '../stores/redis/cluster.ts'
import type { RedisStoresOptions } from '../stores/redis/stores.ts'
import { keptAuditKey, keptSealSecret, rememberedSharedSecret } from '../stores/secret-file.ts'
import { memoryTtlStore } from '../stores/ttl-store.ts'
import { createRecentCalls, type RecentCalls } from '../telemetry/calls/call-records.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics/metrics.ts'
import type { Readings, ServerReading, StoreReading } from '../telemetry/metrics/readings.ts'
import { type CallStats, createStats } from '../telemetry/stats/stats.ts'
import type { Tool } from '../tools/define-tool.ts'
import type { GatewayStatus, StatusRefusal } from '../tools/meta/index.ts'
import { createStartQueue, type StartQueue } from '../upstream/connection/reconnect.ts'
import type { UpstreamServer } from '../upstream/server.ts'
import { openHistory, type PersistentHistory } from './history.ts'
import { createServerOAuth, type OAuth } from './oauth-sign-in.ts'
import { version } from './package-paths.ts'
import { createRejections, type Rejections } from './rejections.ts'
import type { SharedServices } from './workers/worker.ts'

/** State that outlives a configuration: open logs and stores, counters and caches. */
export interface ProcessState extends AsyncDisposable {
  readonly audit: AuditLog
  /** All replicas' audit records; undefined unless `stores.postgres` is set. */
  readonly archive: PostgresAudit | undefined
  /** Aggregates denials by principal, so that they do not fill the audit log. */
  readonly refusals: Refusals
  readonly buckets: Buckets
  readonly cache: Cache
  readonly breakers: Breakers
  readonly bulkhead: Bulkhead
  /** How much waits or is kept, per caller and in all. */
  readonly budgets: Budgets
  /** This process's calls that wait for a person, and approvals for sessions. */
  readonly approvals: Approvals
  /** The pages of apps that callers have read. */
  readonly pages: AppPages
  /** Whether the stores shared with other processes can be reached. */
  storeReadings(): readonly StoreReading[]
  /** Counts rejected requests, for the inbox. */
  readonly rejections: Rejections
  readonly metrics: Metrics
  readonly stats: CallStats
  readonly calls: RecentCalls
  /** Statistics, calls and logins that survive a restart; undefined if disabled. */
  readonly history: PersistentHistory | undefined
  /** The content of calls whose server or agent opted in to capturing. */
  readonly captures: CaptureStore
  readonly observers: readonly Observer[]
  readonly seal: Seal
  /** Membership among replicas or workers; undefined if this is the only process. */
  readonly membership: Pick<RedisMembership, keyof Membership | 'join'> | undefined
  readonly pubSub: PubSub | undefined
  /** Messages to and from the other workers of this gateway only; undefined if this process is not a worker. */
  readonly workers: PubSub | undefined
  /** Leases for resources that only one replica may hold. */
  readonly leases: Leases | undefined
  readonly store: DescriptorStore
  readonly keyUsage: KeyUsage
  /** A TTL store that several processes share; undefined if this is the only process. */
  readonly ttlStore: TtlStore | undefined
  /** Conversations that are waiting for results from client-side tools. */
  readonly clientToolState: ClientToolState
  readonly oauth: OAuth
  /** The detected features of each model server. */
  readonly profiles: ReturnType<typeof createProfiles>
  /** Records child processes, so that processes left behind by a killed gateway can be found and ended. */
  readonly orphanReaper: OrphanReaper
  readonly starts: StartQueue
  readonly clock: Clock
  readonly log: Log
}

/** Settings that a reload may change. They are read from the current generation. */
export interface CurrentSettings {
  readonly loaded: { readonly config: Config }
  readonly servers: ReadonlyMap<string, { readonly server: UpstreamServer }>
  /** Formats arguments for the audit log. */
  readonly describe: DescribeArguments
  readonly breakerOf: (server: string) => BreakerConfig | undefined
  readonly concurrencyOf: {
    readonly servers: ReadonlyMap<string, number>
    readonly agent: (agent: string) => number | undefined
  }
  /** Redacts a name. Memoized, because the same names recur in every record. */
  redactName(text: string): string
}

export interface ProcessStateOptions extends Required<Pick<Readings, 'sessions' | 'reloads' | 'tokens'>> {
  /** Stores shared by the workers on one machine; `stores.redis` takes precedence. */
  readonly shared?: SharedServices | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Opens the state with the first configuration's settings. Settings that a reload may change come from `current`. */
export async function openProcessState(
  config: Config,
  current: () => CurrentSettings,
  { shared: workers, clock, log, sessions, reloads, tokens }: ProcessStateOptions,
): Promise<ProcessState> {
  const { stores } = config
  await removeLeftovers(stores.path)
  const redact = (text: string) => current().redactName(text)
  await using open = new AsyncDisposableStack()
  const own: { audit?: AuditLog } = {}
  // Open the archive before the audit log, so that it is closed after the log and the last records are archived too.
  const archive = open.use(await openArchive(config, { lane: () => own.audit?.status().lane, clock, log }))
  const audit = open.use(
    await openAuditLog({
      folder: config.audit.path,
      sync: config.audit.sync,
      unrecordedReads: config.audit.unrecordedReads,
      retainMs: config.audit.retain,
      copied: archive && ((lane) => archive.shipped(lane)),
      key: await keptAuditKey(stores.path),
      marks: marksFolder(stores.path, config.audit.path),
      describe: (args) => current().describe(args),
      redactor: () => current().redactName,
      version,
      clock,
      log,
    }),
  )
  own.audit = audit
  const stats = createStats({ clock, redact })
  const budgets = createBudgets()
  const captures = open.use(memoryCaptures(() => current().loaded.config.capture, clock))
  const history = open.use(openHistory(config, { budgets, captures, redact, clock, log }))
  const calls = createRecentCalls({ clock, redact, onEnded: history?.add })
  const local = memoryBuckets()
  const ownSecret = () => keptSealSecret(stores.path)
  const sharing = { limits: cacheLimits(current), local, ownSecret, clock, log }
  const remembered = rememberedSharedSecret(stores.path)
  const primary = await workers?.open(sharing)
  const redis = open.use(await openRedis(stores, { ...sharing, remembered, workers: primary?.membership }))
  const shared = redis ?? primary
  const seal = shared?.seal ?? createSeal(await ownSecret())
  const results = cache({ store: shared?.cache ?? memoryCache(cacheLimits(current)), members, clock })
  const concurrency = bulkhead({ ...concurrencyLimits(current), clock })
  budgets.register('calls', () => concurrency.stats().budgets.calls)
  budgets.register('queued_calls', () => concurrency.stats().budgets.queued)
  budgets.register('capture', captures.use)
  if (!redis) budgets.register('cache_bytes', () => cacheBytes(results.stats(), current().loaded.config.cache))
  const storeReadings = (): readonly StoreReading[] => [
    ...(redis ? [{ name: 'redis', up: redis.redis.up, problem: redis.redis.problem }] : []),
    ...(!redis && primary ? [{ name: 'workers', up: primary.up }] : []),
    ...(archive ? [archiveReading(archive)] : []),
    ...(history ? [{ name: 'history', up: history.trouble() === undefined, problem: history.trouble() }] : []),
  ]
  const metrics = open.use(
    createMetrics({
      version,
      clock,
      redact,
      readings: {
        load: concurrency.stats,
        budgets: budgets.report,
        cache: results.stats,
        servers: () => [...current().servers.values()].map(({ server }) => readingOf(server)),
        audit: audit.status,
        sessions,
        reloads,
        tokens,
        stores: storeReadings,
      },
    }),
  )
  const processState = {
    audit,
    archive,
    cache: results,
    bulkhead: concurrency,
    budgets,
    approvals: createApprovals({ budget: budgets.approvals, clock }),
    pages: new AppPages(),
    storeReadings,
    rejections: createRejections(clock),
    metrics,
    stats,
    calls,
    captures,
    history,
    observers: [metrics.observer, stats.observer, calls.observer, ...(history ? [history.observer] : [])],
    // Open this after the audit log, so that it is closed before the log and can write its last counts.
    refusals: open.use(new Refusals({ audit, clock })),
    buckets: shared?.buckets ?? local,
    breakers: open.use(createBreakers({ configOf: (server) => current().breakerOf(server), clock, log })),
    seal,
    membership: shared?.membership,
    leases: open.use(shared && createLeases(shared.membership)),
    pubSub: shared?.pubSub,
    workers: primary?.pubSub,
    oauth: createServerOAuth(redis?.safe, config, { clock, log }),
    ttlStore: shared?.ttlStore,
    clientToolState: createClientToolState({ ttlStore: shared?.ttlStore ?? memoryTtlStore(clock), seal }),
    profiles: createProfiles(),
    keyUsage: open.use(createKeyUsage({ folder: stores.path, clock, log })),
    store: descriptorStore(join(stores.path, 'catalog'), log),
    starts: createStartQueue(clock),
    orphanReaper: open.use(createOrphanReaper(join(stores.path, 'processes'), log, clock)),
    clock,
    log,
  }
  const running = open.move()
  return { ...processState, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

function cacheBytes({ bytes: used, evicted: refused, largest = 0 }: CacheUsage, { maxBytes: limit }: CacheLimits) {
  return { used, limit, perCaller: limit / 2, largest, refused }
}

/** Connects to Redis; undefined unless `stores.redis` is set. */
async function openRedis({ redis, key }: Config['stores'], options: Omit<RedisStoresOptions, 'url' | 'key'>) {
  if (redis === undefined || redis.disabled) return undefined
  const { openRedisStores } = await import('../stores/redis/stores.ts')
  return openRedisStores({ url: redis.url, key, ...options })
}

/** Opens the audit archive; undefined unless `stores.postgres` is set. */
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

function readingOf(server: UpstreamServer): ServerReading {
  const { health, breaker, findings = [] } = server.status()
  const { connections, restarts } = server.control
  return { name: server.name, health, breaker, connections, restarts, findings: findings.length }
}

const cacheLimits = (current: () => CurrentSettings) => ({
  get maxEntries() {
    return current().loaded.config.cache.maxEntries
  },
  get maxBytes() {
    return current().loaded.config.cache.maxBytes
  },
})

const concurrencyLimits = (current: () => CurrentSettings) => ({
  serverLimit: (server: string) => current().concurrencyOf.servers.get(server),
  agentLimit: (agent: string) => current().concurrencyOf.agent(agent),
  perClient: () => current().loaded.config.limits.per === 'client',
  total: () => current().loaded.config.limits.concurrency,
  queue: () => current().loaded.config.limits.queue,
  isStarting: (server: string) => current().servers.get(server)?.server.opening() === true,
})

/** Everything needed to build a generation: the process state and access to the current generation. */
export interface GenerationContext extends ProcessState {
  readonly access: Access
  servedUris(call: Call): (uri: string) => string
  /** Removes the current configuration's secrets from text. */
  redact(text: string): string
  policy(): Policy
  guards(): ServerGuards
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
