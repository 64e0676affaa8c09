import { createKeptLog } from '../../../tests/fixtures/log.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { openSpool } from '../../audit/archive/spool.ts'
import { verifyArchive } from '../../audit/verify/verify-archive.ts'
import { type AuditLogOptions, openAuditLog } from '../../audit/write/audit-log.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { createArchive } from './archive.ts'
import { openPostgresAudit, type PostgresAuditOptions } from './audit.ts'
import { connectPostgres } from './connection.ts'

const replicaSecret = 'the secret of these replicas'
const day = 24 * 60 * 60_000

export interface ReplicaOptions {
  readonly url: string
  readonly folder: string
  readonly postgres?: Partial<PostgresAuditOptions>
  readonly audit?: Partial<AuditLogOptions>
}

/** The audit part of a replica: the local log, and its copy in PostgreSQL. */
export async function openReplica({ url, folder, ...changes }: ReplicaOptions) {
  await using stack = new AsyncDisposableStack()
  const log = createKeptLog()
  const shared = { retainMs: 90 * day, clock: systemClock }
  const postgres = stack.use(
    await openPostgresAudit({
      ...{ url, migrate: 'auto', spool: openSpool(folder), log, everyMs: 10, ...shared },
      ...changes.postgres,
    }),
  )
  const audit = stack.use(
    await openAuditLog({
      ...{ folder, sync: 'none', unrecordedReads: 'allow', key: replicaSecret, log: silentLog, ...shared },
      describe: (given) => given,
      ...changes.audit,
    }),
  )
  const running = stack.move()
  return {
    audit,
    postgres,
    log,
    /** Writes the two records of a call: its beginning and its end. */
    call(id: string, given: object = {}) {
      const subject = { call: id, agent: 'dev', principal: 'test', operation: 'call_tool', write: false, ...given }
      audit.begin({ ...subject, arguments: { of: id } })
      return audit.end({ ...subject, decision: 'ALLOW', is_error: false, latency_ms: 1 })
    },
    /** Resolves when all records have been copied to PostgreSQL. */
    async shipped() {
      await audit.flushed()
      await until(() => postgres.status().up && postgres.status().behindRecords === 0, { what: 'the copy' })
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** What `toolway audit verify` finds in the database. */
export async function verified(url: string) {
  await using postgres = await connectPostgres(url)
  return await verifyArchive({ archive: createArchive(postgres) })
}
