import { type ArchiveName, type ArchiveRecord, archiveNames, type FiledRecord } from '../../core/audit-archive.ts'
import type { AuditRecord } from '../audit/record.ts'
import { textOf } from '../audit-search/filter.ts'
import { isGap } from '../audit-search/row.ts'

/** A record as an archive keeps it. */
export function archived(record: AuditRecord, line: string): ArchiveRecord {
  const fields = record as Partial<Record<ArchiveName, string>>
  const names = archiveNames.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]]))
  const time = Date.parse(record.time)
  return {
    seq: record.seq,
    hash: record.hash,
    prev: record.prev,
    time: Number.isNaN(time) ? 0 : time,
    line,
    phase: record.phase ?? null,
    gap: isGap(record),
    is_error: record.phase === 'after' && Boolean(record.is_error),
    names: Object.fromEntries(names),
    words: record.phase === 'before' ? textOf(record.arguments) : '',
  }
}

/** By what an archive finds a record that the record itself does not say; undefined where all is right. */
export function misfiled(record: AuditRecord, filed: FiledRecord): string | undefined {
  const own = archived(record, filed.line)
  const wrong = archiveNames.find((name) => !isSame(own.names[name] ?? null, filed.names[name]))
  if (wrong) return wrong
  if (own.time !== filed.time) return 'time'
  if (own.is_error !== filed.is_error) return 'is_error'
  if (!isSame(own.words, filed.words)) return 'arguments'
  // A beginning is hidden by its end, which may be anywhere; all else is hidden by nothing.
  return own.phase !== 'before' && filed.shown !== (own.phase === 'after' || own.gap) ? 'operation' : undefined
}

/** A store may not be able to keep every text as it is: such are not compared. */
const isSame = (own: string | null, filed: string | null): boolean =>
  own === filed || (own !== null && (own.length > maxName || own.includes('\0') || !own.isWellFormed()))

const maxName = 512
