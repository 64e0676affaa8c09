import type { Archive, Spool } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createArchive } from './archive.ts'
import { connectMs, connectPostgres, type Postgres, postgresErrorReason } from './connection.ts'
import { currentSchemaVersion, migrate, schemaVersion } from './migrations.ts'
import { removeExpired } from './retention.ts'
import { createShipper } from './shipper.ts'

/** How the copy in PostgreSQL is. */
export interface PostgresAuditStatus {
  readonly up: boolean
  /** Why not. */
  readonly error?: string
  /** How many records of this process wait; undefined where PostgreSQL has not answered since the start. */
  readonly behindRecords: number | undefined
  /** For how long not all of them have been there; 0 while they are. */
  readonly behindSeconds: number
}

/** The audit records of all replicas in PostgreSQL (B10). The local log stays the record: this is a copy of it. */
export interface PostgresAudit extends AsyncDisposable {
  status(): PostgresAuditStatus
  /** Up to where a lane of the local log is copied; 0 as long as that is not known. */
  shipped(lane: string): number
  /** Asks all replicas' records, those of a moment ago included; undefined where PostgreSQL cannot be asked. */
  ask<T>(question: (archive: Archive) => Promise<T>): Promise<T | undefined>
}

export interface PostgresAuditOptions {
  readonly url: string
  /** Whether tables are made and changed at the start, or only by `toolway migrate`. */
  readonly migrate: 'auto' | 'manual'
  readonly spool: Spool
  /** The lane of the local log that this process writes; without one it copies all. */
  lane?(): string | undefined
  readonly retainMs: number
  readonly clock: Clock
  readonly log: Log
  readonly everyMs?: number
}

/** What is asked for right after it was recorded is worth waiting for, but not long. */
const freshMs = 500
const retentionMs = 60 * 60_000
/** While nothing is copied, somebody must still notice that PostgreSQL has gone. */
const probeMs = 5_000

/** Connects and copies in the background: no call ever waits for PostgreSQL, and a start no longer than two seconds. */
export async function openPostgresAudit(options: PostgresAuditOptions): Promise<PostgresAudit> {
  const { spool, clock, log, everyMs = 500 } = options
  const postgres = await connectPostgres({ url: options.url })
  const archive = createArchive(postgres)
  const where = { postgres: postgres.where }
  const shipper = createShipper({
    postgres,
    spool,
    ...(options.lane && { lane: options.lane }),
    now: () => clock.now(),
    diverged: (facts) =>
      log.error(
        { ...where, ...facts },
        'the audit log of this replica does not go on from what PostgreSQL has of it: its files were replaced or put back; they are kept as a new chain',
      ),
    unpartitioned: (facts) =>
      log.warn({ ...where, ...facts }, 'PostgreSQL made no table for a month: its records are kept in records_other'),
    missing: (facts) => log.error({ ...where, ...facts }, 'audit records were removed here before PostgreSQL had them'),
  })

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
    if (up) log.info(where, 'PostgreSQL answers: the audit records of all replicas are kept there')
    else log.warn({ ...where, why }, 'PostgreSQL cannot be used: audit records wait in the local log')
  }

  /** Everything that waits is copied; what is wrong is tried again in the next round. */
  const run = async () => {
    try {
      if (state !== 'up') {
        await ready(postgres, options.migrate)
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
    const removed = await removeExpired(postgres, { nowMs: clock.now(), retainMs: options.retainMs })
    if (removed.records > 0 || removed.partitions.length > 0) {
      log.info({ ...where, ...removed }, 'removed audit records from PostgreSQL that are older than audit.retain')
    }
  }

  /** One round at a time; whoever comes while one is under way gets the next one, together with all others. */
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
  await within(first, connectMs, clock)

  return {
    status: () => {
      const behindRecords = shipper.waiting()
      return {
        up: state === 'up',
        ...(error !== undefined && { error }),
        behindRecords,
        behindSeconds: behindRecords === 0 ? 0 : Math.max(0, clock.monotonic() - wholeAt) / 1000,
      }
    },
    shipped: (lane) => shipper.shipped(lane) ?? 0,
    async ask(question) {
      if (state !== 'up' || ended) return undefined
      await within(rounds(), freshMs, clock)
      try {
        return await question(archive)
      } catch (thrown) {
        // What was wrong with the question, and not with PostgreSQL.
        if (thrown instanceof ToolwayError) throw thrown
        settle(false, postgresErrorReason(thrown))
        return undefined
      }
    },
    async [Symbol.asyncDispose]() {
      ended = true
      timer?.[Symbol.dispose]()
      // What the local log wrote when it was closed should be there, too; if not, the next start sees to it.
      await within(rounds(), connectMs, clock)
      await within(postgres[Symbol.asyncDispose](), connectMs, clock)
    },
  }
}

/** Sees to it that the tables are those of this version. */
async function ready(postgres: Postgres, how: 'auto' | 'manual'): Promise<void> {
  if ((await schemaVersion(postgres)) >= currentSchemaVersion) return
  if (how === 'manual') throw new Error('its tables are not those of this version; run `toolway migrate`')
  await migrate(postgres)
}

async function within(work: PromiseLike<unknown>, ms: number, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  using _ = clock.after(ms, resolve)
  await Promise.race([Promise.resolve(work).catch(() => {}), promise])
}
