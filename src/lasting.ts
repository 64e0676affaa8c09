import { join } from 'node:path'
import { descriptorStore } from './catalog/persistence.ts'
import type { Config } from './config/schema.ts'
import type { Buckets } from './core/buckets.ts'
import type { Clock } from './core/clock.ts'
import type { DescriptorStore } from './core/descriptors.ts'
import type { Log } from './core/log.ts'
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
import { createLeftovers, type Leftovers } from './upstream/leftovers.ts'
import { version } from './version.ts'
import { members } from './wire/scan.ts'
import type { World } from './world.ts'

/** What outlives configurations: what is open, what is counted, what is kept. */
export interface Lasting extends AsyncDisposable {
  readonly audit: AuditLog
  /** Counts refusals by principal, so that they do not fill the audit log. */
  readonly refusals: Refusals
  readonly buckets: Buckets
  readonly cache: Cache
  readonly breakers: Breakers
  readonly bulkhead: Bulkhead
  readonly seal: Seal
  readonly store: DescriptorStore
  /** Remembers child processes, so that those of a killed Toolway are found. */
  readonly leftovers: Leftovers
  readonly clock: Clock
  readonly log: Log
}

/** Opens it by the first configuration. Numbers that may change while it runs are asked of the present world. */
export async function openLasting(
  config: Config,
  present: () => World,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
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
  const lasting = {
    audit,
    // After the log, so that it is closed first: it has something left to write.
    refusals: open.use(createRefusals({ audit, clock })),
    buckets: memoryBuckets(),
    cache: cache({ store: memoryCache(bounds(present)), members, clock }),
    breakers: open.use(createBreakers({ configOf: (server) => present().breakerOf(server), clock, log })),
    bulkhead: bulkhead({ ...places(present), clock }),
    seal: await keptSeal(stores.path),
    store: descriptorStore(join(stores.path, 'catalog'), log),
    leftovers: open.use(createLeftovers({ folder: join(stores.path, 'processes'), log, clock })),
    clock,
    log,
  }
  const running = open.move()
  return { ...lasting, [Symbol.asyncDispose]: () => running.disposeAsync() }
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
