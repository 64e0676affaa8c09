import type { Archive, Spool } from '../../core/audit-archive.ts'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createSeenTime, type SeenTime } from '../../core/seen-time.ts'
import { createArchive } from './archive.ts'
import { connectPostgres, type Postgres, postgresConnectMs, postgresErrorReason } from './connection.ts'
import { requireTables } from './migrations.ts'
import { removeExpired } from './retention.ts'
import { Shipper } from './shipper.ts'

interface PostgresAuditStatus {
  readonly up: boolean
  readonly error?: string
  /** How many of this process's records have not been copied yet; undefined until PostgreSQL has been reached once. */
  readonly behindRecords: number | undefined
  /** How long there have been records to copy; 0 if there are none. */
  readonly behindSeconds: number
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
const maxCopyWaitMs = 500
const retentionMs = 60 * 60_000
/** How often to query PostgreSQL while there is nothing to copy, to detect an outage. */
const postgresProbeMs = 5_000

/** Starts copying in the background. Calls never wait for PostgreSQL; startup waits two seconds at most. */
export async function openPostgresAudit(options: PostgresAuditOptions): Promise<PostgresAudit> {
  const audit = new PostgresAudit(await connectPostgres(options.url), options)
  await audit.start()
  return audit
}

/** A copy of all replicas' audit records (B10). The local log remains authoritative. */
export class PostgresAudit implements AsyncDisposable {
  readonly #postgres: Postgres
  readonly #options: PostgresAuditOptions
  readonly #archive: Archive
  readonly #shipper: Shipper
  readonly #seen: SeenTime
  #state: 'unknown' | 'up' | 'down' = 'unknown'
  #error: string | undefined
  #wholeAt: number
  #answeredAt = Number.NEGATIVE_INFINITY
  #retiredAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  #timer: Disposable | undefined
  #ended = false

  constructor(postgres: Postgres, options: PostgresAuditOptions) {
    this.#postgres = postgres
    this.#options = options
    this.#archive = createArchive(postgres)
    this.#shipper = new Shipper({ postgres, ...options })
    this.#seen = createSeenTime(options.clock, options.retainMs, 0)
    this.#wholeAt = options.clock.monotonic()
  }

  async start(): Promise<void> {
    const first = this.#round()
    void first.then(() => this.#again())
    await settles(first, postgresConnectMs, this.#options.clock)
  }

  status(): PostgresAuditStatus {
    const behindRecords = this.#shipper.waiting()
    const behindMs = behindRecords === 0 ? 0 : Math.max(0, this.#options.clock.monotonic() - this.#wholeAt)
    return { up: this.#state === 'up', error: this.#error, behindRecords, behindSeconds: behindMs / 1000 }
  }

  /** The number of the last record copied from a lane; 0 if unknown. */
  shipped(lane: string): number {
    return this.#shipper.shipped(lane) ?? 0
  }

  /** Queries all replicas' records, including the latest; undefined if PostgreSQL is unavailable. */
  async ask<T>(question: (archive: Archive) => Promise<T>): Promise<T | undefined> {
    if (this.#state !== 'up' || this.#ended) return undefined
    await settles(this.#round(), maxCopyWaitMs, this.#options.clock)
    try {
      return await question(this.#archive)
    } catch (thrown) {
      // A ToolwayError means that the query was invalid, not that PostgreSQL failed.
      if (thrown instanceof ToolwayError) throw thrown
      this.#settle(false, postgresErrorReason(thrown))
      return undefined
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { clock } = this.#options
    this.#ended = true
    this.#timer?.[Symbol.dispose]()
    // Copy the last records from the local log. If that takes too long, the next start copies them.
    await settles(this.#round(), postgresConnectMs, clock)
    await settles(this.#postgres[Symbol.asyncDispose](), postgresConnectMs, clock)
  }

  #again(): void {
    if (this.#ended) return
    const { clock, everyMs = 500 } = this.#options
    this.#timer = clock.after(everyMs, () => void this.#round().then(() => this.#again()))
  }

  /** Starts a copying round. Only one round runs at a time; all requests made during a round share the next one. */
  #round(): Promise<void> {
    if (!this.#running) {
      this.#running = this.#copy().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#round()
    })
    return this.#next
  }

  /** Copies all new records; failures are retried in the next round. */
  async #copy(): Promise<void> {
    const { clock, migrate } = this.#options
    try {
      if (this.#state !== 'up') {
        await requireTables(this.#postgres, migrate)
        this.#shipper.forget()
      }
      await this.#shipper.ship()
      if (clock.monotonic() - this.#answeredAt >= postgresProbeMs)
        await this.#postgres.query('SELECT 1', [], postgresConnectMs)
      this.#answeredAt = clock.monotonic()
      this.#settle(true)
      await this.#retire()
    } catch (thrown) {
      this.#settle(false, postgresErrorReason(thrown))
    }
    if (this.#shipper.waiting() === 0) this.#wholeAt = clock.monotonic()
  }

  async #retire(): Promise<void> {
    const { clock, log, retainMs } = this.#options
    if (clock.monotonic() - this.#retiredAt < retentionMs) return
    this.#retiredAt = clock.monotonic()
    const removed = await removeExpired(this.#postgres, clock.now(), retainMs, this.#seen)
    if (removed.records === 0 && removed.partitions.length === 0) return
    const facts = { postgres: this.#postgres.where, ...removed }
    log.info(facts, 'removed audit records older than audit.retain from PostgreSQL')
  }

  #settle(up: boolean, why?: string): void {
    const now = up ? 'up' : 'down'
    const isNews = this.#state !== now
    this.#state = now
    this.#error = why
    if (!isNews || this.#ended) return
    const { log } = this.#options
    const { where } = this.#postgres
    if (up) log.info({ postgres: where }, 'PostgreSQL is available: the audit records of all replicas are copied there')
    else log.warn({ postgres: where, why }, 'PostgreSQL is unavailable: audit records stay in the local log for now')
  }
}
