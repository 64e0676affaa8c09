import { ToolwayError } from '../core/errors.ts'
import type { AuditPage } from '../serve/admin/contract.ts'
import type { PostgresAudit } from '../stores/postgres/audit.ts'
import { isArchiveCursor } from '../stores/postgres/where.ts'
import { archiveRows } from '../telemetry/audit-archive/rows.ts'
import type { AuditQuery } from '../telemetry/audit-search/search.ts'

/** The records of all replicas, as far as a search needs them. */
export type AuditArchive = Pick<PostgresAudit, 'ask' | 'status'>

/** What the records of all replicas answer; undefined where the local ones have to. A search goes on where it began. */
export async function askArchive(
  archive: AuditArchive,
  asked: AuditQuery & { readonly limit: number },
): Promise<AuditPage | undefined> {
  const fromThere = asked.before !== undefined && isArchiveCursor(asked.before)
  if (asked.before !== undefined && !fromThere) return undefined
  const page = await archive.ask(({ search }) => search(asked))
  if (!page) {
    if (fromThere) throw new ToolwayError('AUDIT_UNAVAILABLE', gone, { retryAfterMs: 1_000 })
    return undefined
  }
  const { behindRecords, behindSeconds } = archive.status()
  return {
    rows: archiveRows(page.found) as unknown as AuditPage['rows'],
    nextCursor: page.next,
    source: 'postgres',
    behind: { records: behindRecords ?? null, seconds: behindSeconds },
  }
}

const gone =
  'PostgreSQL, where this search began, cannot be asked now; try again later, or begin anew to see the records of this replica.'
