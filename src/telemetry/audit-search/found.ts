import type { DatabaseSync } from 'node:sqlite'
import { ToolwayError } from '../../core/errors.ts'
import type { StoredRecord } from '../audit/read.ts'
import type { BeforeRecord } from '../audit/record.ts'
import { type AuditFilter, satisfies } from './filter.ts'
import { isDamage, removeIndex } from './index-file.ts'
import { type AuditRow, isGap, rowOfBegin, rowOfEnd, rowOfGap, rowOfRecord } from './row.ts'
import { createSegments, type Place, type Segments } from './segments.ts'
import { hasWords } from './tables.ts'
import { parseCursor, whereOf } from './where.ts'

export interface FoundQuery extends AuditFilter {
  /** A cursor: only what comes after that row in the order asked for. */
  readonly before?: string
  /** Newest first by default. */
  readonly order?: 'newest' | 'oldest'
}

export interface Found {
  readonly row: AuditRow
  readonly stored: StoredRecord
}

/** What the index finds, read from the segments: operations, or all records where they are wanted raw. */
export function* found(database: DatabaseSync, folder: string, query: FoundQuery, raw: boolean): Generator<Found> {
  const { before, order = 'newest', ...filter } = query
  const newestFirst = order === 'newest'
  const cursor = before === undefined ? undefined : parseCursor(before)
  const where = whereOf({ filter, raw, cursor, newestFirst, words: hasWords(database) })
  const direction = newestFirst ? 'DESC' : 'ASC'
  const statement = database.prepare(
    `SELECT r.lane, r.file, r.at, r.bytes, b.file AS b_file, b.at AS b_at, b.bytes AS b_bytes
     FROM records r LEFT JOIN records b ON b.id = r.begin WHERE ${where.sql}
     ORDER BY r.time ${direction}, r.lane ${direction}, r.seq ${direction}`,
  )
  using segments = createSegments(folder)
  try {
    for (const place of statement.iterate(...where.values)) {
      const answer = readRow(segments, place as unknown as Joined, raw)
      if (answer && (filter.text === undefined || satisfies(answer.row, { text: filter.text }))) yield answer
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    removeIndex(folder)
    const sentence = 'The index of the audit log was damaged and has been removed; run the command again to rebuild it.'
    throw new ToolwayError('INTERNAL', sentence, { cause: error })
  }
}

/** Where a record stands, and the beginning of its operation if it is an end. */
interface Joined extends Place {
  readonly b_file: number | null
  readonly b_at: number | null
  readonly b_bytes: number | null
}

function readRow(segments: Segments, place: Joined, raw: boolean): Found | undefined {
  const stored = segments.read(place)
  // Retention has been faster than the index.
  if (!stored) return undefined
  const { record, lane } = stored
  const before = beginOf(segments, place)
  if (raw) {
    // Those who look for a text want both records of the operation.
    const given = record.phase === 'before' ? record.arguments : before?.arguments
    return { row: { ...rowOfRecord(lane, record), ...(given !== undefined && { arguments: given }) }, stored }
  }
  if (record.phase === 'after') return { row: rowOfEnd(lane, record, before), stored }
  if (record.phase === 'before') return { row: rowOfBegin(lane, record), stored }
  return isGap(record) ? { row: rowOfGap(lane, record), stored } : undefined
}

function beginOf(
  segments: Segments,
  { lane, b_file: file, b_at: at, b_bytes: bytes }: Joined,
): BeforeRecord | undefined {
  if (file === null || at === null || bytes === null) return undefined
  const record = segments.read({ lane, file, at, bytes })?.record
  return record?.phase === 'before' ? record : undefined
}
