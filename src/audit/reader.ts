import type { ArchiveHit, ArchivePage, ArchiveQuery } from '../core/audit-archive.ts'
import { isArchiveCursor } from '../core/audit-filter.ts'
import { ToolwayError } from '../core/errors.ts'
import { parseRecord } from './record.ts'
import { isListed, type OperationRow, rowOf } from './search/rows.ts'

/** With `raw`, the search finds records instead of operations. */
export type AuditPageQuery = ArchiveQuery

export interface AuditSearchPage {
  /** Operations; empty for a raw search. */
  readonly rows: readonly OperationRow[]
  /** The lines of the records; empty unless the search is raw. */
  readonly lines: readonly string[]
  readonly next: string | null
  /** Set only if an archive is configured. */
  readonly source?: 'postgres' | 'local'
}

export interface ArchiveRow extends OperationRow {
  readonly replica: string
  readonly host: string
}

export const emptyPage: AuditSearchPage = { rows: [], lines: [], next: null }

export interface AuditSources {
  /** Undefined if no archive is configured; resolves with undefined if it is unreachable. */
  readonly archive: ((query: AuditPageQuery) => Promise<ArchivePage | undefined>) | undefined
  local(query: AuditPageQuery): Promise<AuditSearchPage>
  /** Message for a search that began in an archive that is now unreachable. */
  unavailable(): string
}

/** Searches the archive first, then the local log. A search continues where its first page came from. */
export async function searchAudit(sources: AuditSources, query: AuditPageQuery): Promise<AuditSearchPage> {
  const { archive, local } = sources
  if (!archive) return local(query)
  const { before } = query
  const beganInArchive = before !== undefined && isArchiveCursor(before)
  const page = before === undefined || beganInArchive ? await archive(query) : undefined
  if (page) return archivePage(page, query.raw)
  if (beganInArchive) throw new ToolwayError('AUDIT_UNAVAILABLE', sources.unavailable(), { retryAfterMs: 1_000 })
  return { ...(await local(query)), source: 'local' }
}

export const archivePage = ({ hits, next }: ArchivePage, raw = false): AuditSearchPage => ({
  rows: raw ? [] : archiveRows(hits),
  lines: raw ? hits.map(({ line }) => line) : [],
  next,
  source: 'postgres',
})

/** Skips lines that are not records. */
export const archiveRows = (hits: readonly ArchiveHit[]): ArchiveRow[] =>
  hits.flatMap(({ lane, line, begin, replica, host }) => {
    const record = parseRecord(line)
    if (!record || !isListed(record)) return []
    const before = begin === null ? undefined : parseRecord(begin)
    return [{ ...rowOf(lane, record, before?.phase === 'before' ? before : undefined), replica, host }]
  })
