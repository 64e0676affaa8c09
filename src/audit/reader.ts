import { type ArchiveHit, type ArchivePage, type ArchiveQuery, isArchiveCursor } from '../core/audit-archive.ts'
import { ToolwayError } from '../core/errors.ts'
import { parseRecord } from './record.ts'
import { isListed, type OperationRow, rowOf } from './search/index-file.ts'

/** A search for one page. With `raw`, it finds records instead of operations. */
export type AuditPageQuery = ArchiveQuery

export interface AuditSearchPage {
  /** The operations found. Empty for a raw search. */
  readonly rows: readonly OperationRow[]
  /** The lines of the records found. Empty unless the search is raw. */
  readonly lines: readonly string[]
  readonly next: string | null
  /** Where the page comes from. Set only if an archive is configured. */
  readonly source?: 'postgres' | 'local'
}

export interface ArchiveRow extends OperationRow {
  readonly replica: string
  readonly host: string
}

export const emptyPage: AuditSearchPage = { rows: [], lines: [], next: null }

export interface AuditSources {
  /** Searches the archive; undefined if none is configured. Resolves with undefined if the archive is unreachable. */
  readonly archive: ((query: AuditPageQuery) => Promise<ArchivePage | undefined>) | undefined
  local(query: AuditPageQuery): Promise<AuditSearchPage>
  /** The message to show if the archive becomes unreachable during a search that began there. */
  unavailable(): string
}

/** Searches the archive if possible, otherwise the local log. All pages of a search come from the same source. */
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

/** The operations in an archive's search results. Skips lines that are not records. */
export const archiveRows = (hits: readonly ArchiveHit[]): ArchiveRow[] =>
  hits.flatMap(({ lane, line, begin, replica, host }) => {
    const record = parseRecord(line)
    if (!record || !isListed(record)) return []
    const before = begin === null ? undefined : parseRecord(begin)
    return [{ ...rowOf(lane, record, before?.phase === 'before' ? before : undefined), replica, host }]
  })
