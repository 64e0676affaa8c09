import { join } from 'node:path'
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type ArchiveName, archiveNames } from '../../core/audit-archive.ts'
import { setBounded } from '../../lib/memoize.ts'
import { inTransaction } from '../../lib/sqlite.ts'
import {
  firstSeqOf,
  ifExists,
  listLanes,
  listSegments,
  readPart,
  readRecords,
  type StoredRecord,
  segmentFileName,
  storedRecord,
} from '../log-files.ts'
import type { AuditRecord } from '../record.ts'
import { emptyIndex, hasWords, isGap, searchableText } from './index-file.ts'

export interface CatchUpOptions {
  onProgress?(records: number): void
  readonly signal?: AbortSignal
  /** The number of records that are entered in one transaction. */
  readonly batchSize?: number
}

interface IndexPosition {
  readonly file: number
  readonly at: number
}

interface IndexedLane extends IndexPosition {
  /** The position and hash of the last indexed record. If that record is gone, the file was not merely appended to. */
  readonly last: number
  readonly hash: string
}

/** Adds new records to the index and returns their number. */
export async function catchUp(database: DatabaseSync, folder: string, options: CatchUpOptions = {}): Promise<number> {
  if (!isConsistent(database, folder)) emptyIndex(database)
  forgetRemoved(database, folder)
  let count = 0
  for (const lane of listLanes(folder)) {
    let going = true
    while (going) {
      going = false
      for await (const batch of batches(database, folder, lane, options.batchSize)) {
        options.signal?.throwIfAborted()
        const fresh = enterBatch(database, lane, batch)
        // If another process emptied the index, read this lane again, from the position that is now in the index.
        going = fresh === undefined
        if (fresh === undefined) break
        count += fresh
        options.onProgress?.(count)
      }
    }
  }
  if (count > 0) database.exec('PRAGMA optimize')
  return count
}

const indexedLane = (database: DatabaseSync, lane: string): IndexedLane | undefined =>
  database.prepare('SELECT file, at, last, hash FROM lanes WHERE lane = ?').get(Number(lane)) as IndexedLane | undefined

interface Batch {
  readonly records: readonly StoredRecord[]
  /** Everything before this position must already be indexed. */
  readonly from: IndexPosition | undefined
}

async function* batches(
  database: DatabaseSync,
  folder: string,
  lane: string,
  batchSize = 10_000,
): AsyncGenerator<Batch> {
  let from: IndexPosition | undefined = indexedLane(database, lane)
  const start = from && { [lane]: { file: segmentFileName(from.file), offset: from.at } }
  let records: StoredRecord[] = []
  for await (const stored of readRecords(folder, { lanes: [lane], from: start })) {
    records.push(stored)
    if (records.length < batchSize) continue
    yield { records, from }
    records = []
    from = { file: firstSeqOf(stored.file), at: stored.offset + stored.bytes }
  }
  if (records.length > 0) yield { records, from }
}

/** Adds a batch, skipping records already indexed. Returns the number added; undefined if the index was emptied. */
function enterBatch(database: DatabaseSync, lane: string, { records, from }: Batch): number | undefined {
  return inTransaction(database, () => {
    const indexed = indexedLane(database, lane)
    if (from && (!indexed || isBefore(indexed, from))) return undefined
    const isNew = ({ file, offset }: StoredRecord) =>
      !indexed || !isBefore({ file: firstSeqOf(file), at: offset }, indexed)
    const fresh = records.filter(isNew)
    const last = fresh.at(-1)
    if (!last) return 0
    createIndexWriter(database).enter(fresh)
    database
      .prepare('INSERT OR REPLACE INTO lanes (lane, file, at, last, hash) VALUES (?, ?, ?, ?, ?)')
      .run(Number(lane), firstSeqOf(last.file), last.offset + last.bytes, last.offset, last.record.hash)
    return fresh.length
  })
}

const isBefore = (a: IndexPosition, b: IndexPosition): boolean => a.file < b.file || (a.file === b.file && a.at < b.at)

/** Whether each lane's last indexed record is still in place or was removed by retention. */
function isConsistent(database: DatabaseSync, folder: string): boolean {
  const readRecord = createSegmentReader(folder)
  const lanes = database.prepare('SELECT lane FROM lanes').all()
  return lanes.every(({ lane }) => {
    const { file, at, last, hash } = indexedLane(database, String(lane)) as IndexedLane
    const oldest = listSegments(folder, String(lane))[0]
    if (oldest === undefined || file < firstSeqOf(oldest)) return true
    return readRecord({ lane: Number(lane), file, at: last, bytes: at - last })?.record.hash === hash
  })
}

function forgetRemoved(database: DatabaseSync, folder: string): void {
  const gone = database
    .prepare('SELECT lane, min(seq) AS seq FROM records GROUP BY lane')
    .all()
    .map(({ lane, seq }) => ({ lane: Number(lane), seq: Number(seq), oldest: listSegments(folder, String(lane))[0] }))
    .filter(({ seq, oldest }) => oldest === undefined || seq < firstSeqOf(oldest))
  if (gone.length === 0) return
  inTransaction(database, () => {
    const writer = createIndexWriter(database)
    for (const { lane, oldest } of gone) {
      writer.forget(lane, oldest === undefined ? undefined : firstSeqOf(oldest))
      if (oldest === undefined) database.prepare('DELETE FROM lanes WHERE lane = ?').run(lane)
    }
  })
}

/** The columns shared with the archive, and `latency_ms`, which only the index has. */
const columns = [...archiveNames, 'latency_ms'] as const

function createIndexWriter(database: DatabaseSync) {
  const insert = database.prepare(
    `INSERT INTO records (lane, seq, file, at, bytes, time, phase, shown, begin, is_error, ${columns.join(', ')})
     VALUES (${Array.from({ length: 10 + columns.length }, () => '?').join(', ')})
     ON CONFLICT DO NOTHING`,
  )
  const end = database.prepare(
    `UPDATE records SET shown = 0 WHERE call = ? AND lane = ? AND phase = 'before' AND shown = 1 RETURNING id`,
  )
  const prepareWords = (sql: string) => (hasWords(database) ? database.prepare(sql) : undefined)
  const insertWords = prepareWords('INSERT INTO words (rowid, text) VALUES (?, ?)')
  const removeWords = prepareWords(
    `DELETE FROM words WHERE rowid IN (SELECT id FROM records WHERE lane = ? AND seq < ? AND phase = 'before')`,
  )
  const remove = database.prepare('DELETE FROM records WHERE lane = ? AND seq < ?')

  const put = ({ lane, file, offset, bytes, record }: StoredRecord, shown: boolean, begin: SQLInputValue): number => {
    const names = record as AuditRecord & Partial<Record<ArchiveName, string>>
    const latency = record.phase === 'after' ? record.latency_ms : undefined
    const { changes, lastInsertRowid } = insert.run(
      Number(lane),
      record.seq,
      firstSeqOf(file),
      offset,
      bytes,
      Date.parse(record.time) || 0,
      record.phase ?? null,
      shown ? 1 : 0,
      begin,
      record.phase === 'after' && record.is_error ? 1 : 0,
      ...archiveNames.map((name) => names[name] ?? null),
      typeof latency === 'number' ? latency : null,
    )
    const id = Number(lastInsertRowid)
    const text = changes === 1 && record.phase === 'before' ? searchableText(record.arguments) : ''
    if (text !== '') insertWords?.run(id, text)
    return id
  }

  return {
    enter(records: readonly StoredRecord[]): void {
      // Most operations end within the same batch as they begin, so do not mark those as open.
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
    forget(lane: number, before = Number.MAX_SAFE_INTEGER): void {
      removeWords?.run(lane, before)
      remove.run(lane, before)
    },
  }
}

export interface IndexedPosition {
  readonly lane: number
  readonly file: number
  readonly at: number
  readonly bytes: number
}

/** Bytes to read before and after a record. Adjacent records are usually read together, backwards as often as forwards. */
const blockBytes = 32 * 1024
const maxBlocks = 32

/** Creates a function that reads a record. It returns undefined if the record was removed or replaced. */
export function createSegmentReader(folder: string) {
  /** The part of each file that was read last. */
  const blocks = new Map<string, { readonly start: number; readonly bytes: Buffer }>()

  const bytesAt = (path: string, at: number, length: number): Buffer => {
    let block = blocks.get(path)
    if (!block || at < block.start || at + length > block.start + block.bytes.length) {
      const start = Math.max(0, at - blockBytes)
      block = { start, bytes: readPart(path, at + length + blockBytes - start, start).bytes }
      setBounded(blocks, path, block, maxBlocks)
    }
    return block.bytes.subarray(at - block.start, at - block.start + length)
  }

  return ({ lane, file: first, at, bytes }: IndexedPosition): StoredRecord | undefined => {
    const file = segmentFileName(first)
    const line = ifExists(() => bytesAt(join(folder, String(lane), file), at, bytes))
    if (line?.length !== bytes || line.at(-1) !== 10) return undefined
    return storedRecord(String(lane), file, { bytes: line.subarray(0, -1), offset: at, whole: true })
  }
}
