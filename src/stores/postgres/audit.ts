import type { Archive, Spool } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime } from '../../core/seen-time.ts'
import { createArchive } from './archive.ts'
import { connectMs, connectPostgres, postgresErrorReason } from './connection.ts'
import { requireTables } from './migrations.ts'
import { removeExpired } from './retention.ts'
import { createShipper } from './shipper.ts'

export interface PostgresAuditStatus {
  readonly up: boolean
  readonly error?: string
  /** How many of this process's records have not been copied yet; undefined until PostgreSQL has been reached once. */
  readonly behindRecords: number | undefined
  /** How long there have been records to copy; 0 if there are none. */
  readonly behindSeconds: number
}

/** A copy of all replicas' audit records (B10). The local log remains authoritative. */
export interface PostgresAudit extends AsyncDisposable {
  status(): PostgresAuditStatus
  /** The number of the last record copied from a lane; 0 if unknown. */
  shipped(lane: string): number
  /** Queries all replicas' records, including the latest; undefined if PostgreSQL is unavailable. */
  ask<T>(question: (archive: Archive) => Promise<T>): Promise<T | undefined>
}

export interface PostgresAuditOptions {
  readonly url: string
  /** Whether to create the tables automatically; `manual` leaves them to `toolway migrate`. */
  readonly migrate: 'auto' | 'manual'
  readonly spool: Spool
  /** The lane that this process writes to. If undefined, all lanes are copied. */
  lane?(): string | undefined
  readonly retainMs: number
  readonly clock: Clock
  readonly log: Log
  readonly everyMs?: number
}

/** How long a query waits for the latest records to be copied. */
const freshMs = 500
const retentionMs = 60 * 60_000
/** How often to query PostgreSQL while there is nothing to copy, to detect an outage. */
const probeMs = 5_000

/** Starts copying in the background. Calls never wait for PostgreSQL; startup waits two seconds at most. */
export async function openPostgresAudit(options: PostgresAuditOptions): Promise<PostgresAudit> {
  const { spool, clock, log, everyMs = 500 } = options
  const postgres = await connectPostgres(options.url)
  const archive = createArchive(postgres)
  const where = { postgres: postgres.where }
  const shipper = createShipper({
    postgres,
    spool,
    lane: options.lane,
    clock,
    diverged: (facts) => log.error({ ...where, ...facts }, diverged),
    unpartitioned: (facts) =>
      log.warn({ ...where, ...facts }, 'could not create a monthly table; its records are stored in records_other'),
    missing: (facts) =>
      log.error({ ...where, ...facts }, 'audit records were removed locally before they were copied to PostgreSQL'),
  })

  const seen = createSeenTime(clock, options.retainMs, 0)
  let state: 'unknown' | 'up' | 'down' = 'unknown'
  let error: string | undefined
  let wholeAt = clock.monotonic()
  let answeredAt = Number.NEGATIVE_INFINITY
  let retiredAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  let timer: Disposable | undefined
  let ended = false

  const settle = (up: boolean, why?: string) => {
    const now = up ? 'up' : 'down'
    const news = state !== now
    state = now
    error = why
    if (!news || ended) return
    if (up) log.info(where, 'PostgreSQL is available: the audit records of all replicas are copied there')
    else log.warn({ ...where, why }, 'PostgreSQL is unavailable: audit records stay in the local log for now')
  }

  /** Copies all new records; failures are retried in the next round. */
  const run = async () => {
    try {
      if (state !== 'up') {
        await requireTables(postgres, options.migrate)
        shipper.forget()
      }
      await shipper.ship()
      if (clock.monotonic() - answeredAt >= probeMs) await postgres.query('SELECT 1', [], connectMs)
      answeredAt = clock.monotonic()
      settle(true)
      await retire()
    } catch (thrown) {
      settle(false, postgresErrorReason(thrown))
    }
    if (shipper.waiting() === 0) wholeAt = clock.monotonic()
  }

  const retire = async () => {
    if (clock.monotonic() - retiredAt < retentionMs) return
    retiredAt = clock.monotonic()
    const removed = await removeExpired(postgres, clock.now(), options.retainMs, seen)
    if (removed.records > 0 || removed.partitions.length > 0) {
      log.info({ ...where, ...removed }, 'removed audit records older than audit.retain from PostgreSQL')
    }
  }

  /** Starts a copying round. Only one round runs at a time; all requests made during a round share the next one. */
  const rounds = (): Promise<void> => {
    if (!running) {
      running = run().finally(() => {
        running = undefined
      })
      return running
    }
    next ??= running.then(() => {
      next = undefined
      return rounds()
    })
    return next
  }

  const again = () => {
    if (ended) return
    timer = clock.after(everyMs, () => void rounds().then(again))
  }

  const first = rounds()
  void first.then(again)
  await settles(first, connectMs, clock)

  return {
    status: () => {
      const behindRecords = shipper.waiting()
      return {
        up: state === 'up',
        error,
        behindRecords,
        behindSeconds: behindRecords === 0 ? 0 : Math.max(0, clock.monotonic() - wholeAt) / 1000,
      }
    },
    shipped: (lane) => shipper.shipped(lane) ?? 0,
    async ask(question) {
      if (state !== 'up' || ended) return undefined
      await settles(rounds(), freshMs, clock)
      try {
        return await question(archive)
      } catch (thrown) {
        // A ToolwayError means that the query was invalid, not that PostgreSQL failed.
        if (thrown instanceof ToolwayError) throw thrown
        settle(false, postgresErrorReason(thrown))
        return undefined
      }
    },
    async [Symbol.asyncDispose]() {
      ended = true
      timer?.[Symbol.dispose]()
      // Copy the last records from the local log. If that takes too long, the next start copies them.
      await settles(rounds(), connectMs, clock)
      await settles(postgres[Symbol.asyncDispose](), connectMs, clock)
    },
  }
}

const diverged =
  'the local audit log does not continue the copy in PostgreSQL, because its files were replaced or restored; it is copied as a new chain'
