import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type ArchiveName, archiveNames } from '../../core/audit-archive.ts'
import { firstSeqOf } from '../audit/layout.ts'
import type { StoredRecord } from '../audit/read.ts'
import type { AuditRecord } from '../audit/record.ts'
import { textOf } from './filter.ts'
import { isGap } from './row.ts'
import { hasWords } from './tables.ts'

/** Writes records into the index. */
export interface Entry {
  /** Records of one lane, in their order. */
  enter(records: readonly StoredRecord[]): void
  /** Forgets the records of a lane before a number; all of them by default. */
  forget(lane: number, before?: number): void
}

/** The names that both places of search know, and what only this one has a column for. */
const columns = [...archiveNames, 'latency_ms'] as const

/** Statements are prepared once for all records. */
export function createEntry(database: DatabaseSync): Entry {
  const insert = database.prepare(
    `INSERT INTO records (lane, seq, file, at, bytes, time, phase, shown, begin, is_error, ${columns.join(', ')})
     VALUES (${Array.from({ length: 10 + columns.length }, () => '?').join(', ')})
     ON CONFLICT DO NOTHING`,
  )
  const end = database.prepare(
    `UPDATE records SET shown = 0 WHERE call = ? AND lane = ? AND phase = 'before' AND shown = 1 RETURNING id`,
  )
  const searchable = hasWords(database)
  const insertWords = searchable ? database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)') : undefined
  const removeWords = searchable
    ? database.prepare(
        `DELETE FROM words WHERE rowid IN (SELECT id FROM records WHERE lane = ? AND seq < ? AND phase = 'before')`,
      )
    : undefined
  const remove = database.prepare('DELETE FROM records WHERE lane = ? AND seq < ?')

  const put = ({ lane, file, offset, bytes, record }: StoredRecord, shown: boolean, begin: SQLInputValue): number => {
    const names = record as AuditRecord & Partial<Record<ArchiveName, string>>
    const latency = record.phase === 'after' ? record.latency_ms : undefined
    const time = Date.parse(record.time)
    const { changes, lastInsertRowid } = insert.run(
      Number(lane),
      record.seq,
      firstSeqOf(file),
      offset,
      bytes,
      Number.isNaN(time) ? 0 : time,
      record.phase ?? null,
      shown ? 1 : 0,
      begin,
      record.phase === 'after' && record.is_error ? 1 : 0,
      ...archiveNames.map((name) => names[name] ?? null),
      typeof latency === 'number' ? latency : null,
    )
    const id = Number(lastInsertRowid)
    const text = changes === 1 && record.phase === 'before' ? textOf(record.arguments) : ''
    if (text !== '') insertWords?.run(id, text)
    return id
  }

  return {
    enter(records) {
      // Most operations end soon after they began: those are never marked as open in the first place.
      const ended = new Set(records.map(({ record }) => (record.phase === 'after' ? record.call : undefined)))
      const begun = new Map<string, number>()
      for (const stored of records) {
        const { lane, record } = stored
        if (record.phase === 'before') {
          begun.set(record.call, put(stored, !ended.has(record.call), null))
        } else if (record.phase === 'after') {
          put(stored, true, begun.get(record.call) ?? end.get(record.call, Number(lane))?.id ?? null)
        } else put(stored, isGap(record), null)
      }
    },
    forget(lane, before = Number.MAX_SAFE_INTEGER) {
      removeWords?.run(lane, before)
      remove.run(lane, before)
    },
  }
}
