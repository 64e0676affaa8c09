import { join } from 'node:path'
import { descriptorStore } from './catalog/persistence.ts'
import type { Config } from './config/schema.ts'
import type { Buckets } from './core/buckets.ts'
import type { Clock } from './core/clock.ts'
import type { DescriptorStore } from './core/descriptors.ts'
import type { Log } from './core/log.ts'
import type { Observer } from './core/observer.ts'
import type { Seal } from './core/seal.ts'
import { type Breakers, createBreakers } from './pipeline/breaker/breakers.ts'
import { type Bulkhead, bulkhead } from './pipeline/bulkhead/bulkhead.ts'
import { type Cache, cache } from './pipeline/cache/cache.ts'
import { createRefusals, type Refusals } from './pipeline/refusals.ts'
import { keptAuditKey } from './stores/audit-key.ts'
import { memoryBuckets } from './stores/buckets.ts'
import { memoryCache } from './stores/cache.ts'
import { keptSeal } from './stores/seal.ts'
import { type AuditLog, openAuditLog } from './telemetry/audit/log.ts'
import { createRecentCalls, type RecentCalls } from './telemetry/calls/recent.ts'
import { createMetrics, type Metrics } from './telemetry/metrics/metrics.ts'
import type { Readings, ServerReading } from './telemetry/metrics/readings.ts'
import { type CallStats, createStats } from './telemetry/stats/stats.ts'
import { createLeftovers, type Leftovers } from './upstream/leftovers.ts'
import type { Server } from './upstream/server.ts'
import { version } from './version.ts'
import { members } from './wire/scan.ts'
import type { World } from './world/world.ts'

/** What outlives configurations: what is open, what is counted, what is kept. */
export interface Lasting extends AsyncDisposable {
  readonly audit: AuditLog
  /** Counts refusals by principal, so that they do not fill the audit log. */
  readonly refusals: Refusals
  readonly buckets: Buckets
  readonly cache: Cache
  readonly breakers: Breakers
  readonly bulkhead: Bulkhead
  readonly metrics: Metrics
  readonly stats: CallStats
  readonly calls: RecentCalls
  /** Who watches the calls of every configuration. */
  readonly observers: readonly Observer[]
  readonly seal: Seal
  readonly store: DescriptorStore
  /** Remembers child processes, so that those of a killed Toolway are found. */
  readonly leftovers: Leftovers
  readonly clock: Clock
  readonly log: Log
}

export interface LastingOptions extends Required<Pick<Readings, 'sessions' | 'reloads'>> {
  readonly clock: Clock
  readonly log: Log
}

/** Opens it by the first configuration. Numbers that may change while it runs are asked of the present world. */
export async function openLasting(
  config: Config,
  present: () => World,
  { clock, log, sessions, reloads }: LastingOptions,
): Promise<Lasting> {
  const { audit: auditing, stores } = config
  await using open = new AsyncDisposableStack()
  const audit = open.use(
    await openAuditLog({
      folder: auditing.path,
      sync: auditing.sync,
      unrecordedReads: auditing.unrecordedReads,
      retainMs: auditing.retain,
      key: await keptAuditKey(stores.path),
      describe: (args) => present().describe(args),
      redact: (text) => present().redactName(text),
      version,
      clock,
      log,
    }),
  )
  const redact = (text: string) => present().redactName(text)
  const stats = createStats({ clock, redact })
  const calls = createRecentCalls({ clock, redact })
  const counted = {
    cache: cache({ store: memoryCache(bounds(present)), members, clock }),
    bulkhead: bulkhead({ ...places(present), clock }),
  }
  const metrics = open.use(
    createMetrics({
      version,
      clock,
      redact,
      readings: {
        load: counted.bulkhead.stats,
        cache: counted.cache.stats,
        servers: () => [...present().servers.values()].map(({ server }) => readingOf(server)),
        audit: audit.status,
        sessions,
        reloads,
      },
    }),
  )
  const lasting = {
    audit,
    ...counted,
    metrics,
    stats,
    calls,
    observers: [metrics.observer, stats.observer, calls.observer],
    // After the log, so that it is closed first: it has something left to write.
    refusals: open.use(createRefusals({ audit, clock })),
    buckets: memoryBuckets(),
    breakers: open.use(createBreakers({ configOf: (server) => present().breakerOf(server), clock, log })),
    seal: await keptSeal(stores.path),
    store: descriptorStore(join(stores.path, 'catalog'), log),
    leftovers: open.use(createLeftovers({ folder: join(stores.path, 'processes'), log, clock })),
    clock,
    log,
  }
  const running = open.move()
  return { ...lasting, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

function readingOf(server: Server): ServerReading {
  const { health, breaker } = server.status()
  const { connections, restarts } = server.control
  return { name: server.name, health, breaker, connections, restarts }
}

const bounds = (present: () => World) => ({
  get maxEntries() {
    return present().loaded.config.cache.maxEntries
  },
  get maxBytes() {
    return present().loaded.config.cache.maxBytes
  },
})

const places = (present: () => World) => ({
  serverLimit: (server: string) => present().concurrencyOf.servers.get(server),
  agentLimit: (agent: string) => present().concurrencyOf.agent(agent),
  total: () => present().loaded.config.limits.concurrency,
  queue: () => present().loaded.config.limits.queue,
})
