import type { ArchiveFound } from '../../core/audit-archive.ts'
import { parseRecord } from '../audit/parse-record.ts'
import { type AuditRow, isGap, rowOfBegin, rowOfEnd, rowOfGap } from '../audit-search/row.ts'

/** An operation of any replica. */
export interface ArchiveRow extends AuditRow {
  /** Which log it stands in, and on which machine that is. */
  readonly replica: string
  readonly host: string
}

/** Operations as readers see them, from what an archive found; what is no record any more is passed over. */
export const archiveRows = (found: readonly ArchiveFound[]): ArchiveRow[] =>
  found.flatMap((one) => {
    const row = rowOf(one)
    return row ? [{ ...row, replica: one.replica, host: one.host }] : []
  })

function rowOf({ lane, line, begin }: ArchiveFound): AuditRow | undefined {
  const record = parseRecord(line)
  if (!record) return undefined
  if (record.phase === 'before') return rowOfBegin(lane, record)
  if (record.phase === undefined) return isGap(record) ? rowOfGap(lane, record) : undefined
  const before = begin === null ? undefined : parseRecord(begin)
  return rowOfEnd(lane, record, before?.phase === 'before' ? before : undefined)
}
