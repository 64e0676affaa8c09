import type { Config } from '../config/schema.ts'
import type { Budgets } from '../core/budgets.ts'
import type { Clock } from '../core/clock.ts'
import type { HistoryStore, LoginStore } from '../core/history.ts'
import type { Log } from '../core/log.ts'
import type { Observer } from '../core/observer.ts'
import type { PostgresHistoryOptions } from '../stores/postgres/history.ts'
import { sqliteHistory } from '../stores/sqlite/history-store.ts'
import type { CallRecord, RecentCalls } from '../telemetry/calls/call-records.ts'
import { type CallHistory, createCallHistory } from '../telemetry/history/call-history.ts'
import { createHistoryRecorder } from '../telemetry/history/history-recorder.ts'
import { moduleFile } from './package-paths.ts'

/**
 * What the dashboard shows across restarts. Workers on one machine share a file; replicas share PostgreSQL, if it is
 * configured.
 */
export interface PersistentHistory extends AsyncDisposable {
  readonly observer: Observer
  add(call: CallRecord): void
  /** Starts recording. Only a gateway with a dashboard records, so that commands do not open the file. */
  start(): void
  /** Adds the calls of earlier processes to those in memory, once. */
  restore(calls: Pick<RecentCalls, 'restore'>): Promise<void>
  readonly past: CallHistory
  readonly logins: LoginStore
  /** Whether other replicas write to it. */
  readonly shared: boolean
  /** Why history is not stored at present, on this machine or where it is shared. */
  trouble(): { readonly local?: string | undefined; readonly shared?: string | undefined }
}

export interface HistoryOptions {
  readonly budgets: Budgets
  redact(text: string): string
  readonly clock: Clock
  readonly log: Log
}

/** As many as are kept in memory. */
const maxRestored = 2_000

/** Opens the history; undefined if it is disabled. The file is opened when the first call has ended. */
export async function openHistory(
  { history, stores }: Config,
  options: HistoryOptions,
): Promise<PersistentHistory | undefined> {
  if (history.disabled) return undefined
  const { budgets, redact, clock, log } = options
  const bounds = { keepMs: history.keep, maxBytes: history.maxBytes, clock, log }
  const local = sqliteHistory({
    ...{ folder: stores.path, thread: moduleFile('stores/sqlite/history-thread') },
    ...bounds,
  })
  const shared = await openShared(stores.postgres, bounds)
  const store = shared ? withShared(local, shared) : local
  const recorder = createHistoryRecorder({ store, clock, redact })
  const past = createCallHistory({ store, recorder, clock, redact })
  budgets.register('history_calls', recorder.use)
  if (shared) budgets.register('history_shared', shared.use)
  let recording = false
  let restored: Promise<void> | undefined
  return {
    observer: {
      ended(observed) {
        if (recording) recorder.observer.ended(observed)
      },
    },
    add(call) {
      if (recording) recorder.add(call)
    },
    start() {
      recording = true
    },
    async restore(calls) {
      restored ??= past.latest(maxRestored).then((latest) => calls.restore(latest))
      await restored
    },
    past,
    logins: store.logins,
    shared: shared !== undefined,
    trouble: () => ({ local: local.trouble(), shared: shared?.trouble() }),
    async [Symbol.asyncDispose]() {
      local.stopping()
      await recorder[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

async function openShared(postgres: Config['stores']['postgres'], bounds: HistoryBounds) {
  if (postgres === undefined || postgres.disabled) return undefined
  const { postgresHistory } = await import('../stores/postgres/history.ts')
  const { url, migrate } = postgres
  return postgresHistory({ url, migrate, ...bounds })
}

type HistoryBounds = Pick<PostgresHistoryOptions, 'keepMs' | 'maxBytes' | 'clock' | 'log'>

/** Writes to both. Reads what all replicas have written and, while that cannot be reached, what this machine has. */
function withShared(local: HistoryStore, shared: HistoryStore): HistoryStore {
  return {
    async write(batch) {
      const stored = await Promise.all([local.write(batch), shared.write(batch)])
      return stored.includes(true)
    },
    sums: async (query) => (await shared.sums(query)) ?? local.sums(query),
    calls: async (query) => (await shared.calls(query)) ?? local.calls(query),
    call: async (id) => (await shared.call(id)) ?? local.call(id),
    logins: {
      async add(login) {
        const stored = await Promise.all([local.logins.add(login), shared.logins.add(login)])
        return stored[1]
      },
      // If the shared store does not have this login, it was ended on another replica.
      async find(digest) {
        const found = await shared.logins.find(digest)
        return found === undefined ? local.logins.find(digest) : found
      },
      async remove(digest) {
        await Promise.all([local.logins.remove(digest), shared.logins.remove(digest)])
      },
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([local[Symbol.asyncDispose](), shared[Symbol.asyncDispose]()])
    },
  }
}
