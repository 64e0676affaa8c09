import type { DatabaseSync } from 'node:sqlite'
import { firstSeqOf, lanesOf, segmentFile, segmentsOf } from '../audit/layout.ts'
import { readRecords, type StoredRecord } from '../audit/read.ts'
import { createEntry } from './enter.ts'
import { emptyIndex, inTransaction } from './index-file.ts'
import { createSegments } from './segments.ts'

export interface CatchUpOptions {
  /** So many records have been entered so far. */
  onProgress?(records: number): void
  readonly signal?: AbortSignal
}

/** Up to where a lane has been entered. */
interface Entered {
  readonly file: number
  readonly at: number
  /** Where its last record stands, and that record's hash: what is not there any more was not only added to. */
  readonly last: number
  readonly hash: string
}

const batchSize = 10_000

/** Enters what was written since the last time, and forgets what was removed. Returns how many records were new. */
export async function catchUp(database: DatabaseSync, folder: string, options: CatchUpOptions = {}): Promise<number> {
  if (!isConsistent(database, folder)) emptyIndex(database)
  forgetRemoved(database, folder)
  let count = 0
  for (const lane of lanesOf(folder)) {
    let going = true
    while (going) {
      going = false
      for await (const batch of batches(database, folder, lane)) {
        options.signal?.throwIfAborted()
        const fresh = enterBatch(database, lane, batch)
        // Another process has emptied the index: this lane is read again from where it is now.
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

const enteredOf = (database: DatabaseSync, lane: string): Entered | undefined =>
  database.prepare('SELECT file, at, last, hash FROM lanes WHERE lane = ?').get(Number(lane)) as Entered | undefined

interface Batch {
  readonly records: readonly StoredRecord[]
  /** Everything before here must have been entered. */
  readonly from: Spot | undefined
}

type Spot = Pick<Entered, 'file' | 'at'>

async function* batches(database: DatabaseSync, folder: string, lane: string): AsyncGenerator<Batch> {
  let from: Spot | undefined = enteredOf(database, lane)
  const start = from && { [lane]: { file: segmentFile(from.file), offset: from.at } }
  let records: StoredRecord[] = []
  for await (const stored of readRecords(folder, { lanes: [lane], ...(start && { from: start }) })) {
    records.push(stored)
    if (records.length < batchSize) continue
    yield { records, from }
    records = []
    from = { file: firstSeqOf(stored.file), at: stored.offset + stored.bytes }
  }
  if (records.length > 0) yield { records, from }
}

/** Another process may have entered some of them in the meantime: those are passed over. */
function enterBatch(database: DatabaseSync, lane: string, { records, from }: Batch): number | undefined {
  return inTransaction(database, () => {
    const entered = enteredOf(database, lane)
    if (from && (!entered || isBefore(entered, from))) return undefined
    const fresh = entered ? records.filter((stored) => !isBefore(spotOf(stored), entered)) : records
    const last = fresh.at(-1)
    if (!last) return 0
    createEntry(database).enter(fresh)
    database
      .prepare('INSERT OR REPLACE INTO lanes (lane, file, at, last, hash) VALUES (?, ?, ?, ?, ?)')
      .run(Number(lane), firstSeqOf(last.file), last.offset + last.bytes, last.offset, last.record.hash)
    return fresh.length
  })
}

const spotOf = ({ file, offset }: StoredRecord): Spot => ({ file: firstSeqOf(file), at: offset })

const isBefore = (a: Spot, b: Spot): boolean => a.file < b.file || (a.file === b.file && a.at < b.at)

/** Whether the last record entered of each lane still stands where it stood, or was removed because of its age. */
function isConsistent(database: DatabaseSync, folder: string): boolean {
  using segments = createSegments(folder)
  const lanes = database.prepare('SELECT lane FROM lanes').all()
  return lanes.every(({ lane }) => {
    const { file, at, last, hash } = enteredOf(database, String(lane)) as Entered
    const oldest = segmentsOf(folder, String(lane))[0]
    if (oldest === undefined || file < firstSeqOf(oldest)) return true
    return segments.read({ lane: Number(lane), file, at: last, bytes: at - last })?.record.hash === hash
  })
}

function forgetRemoved(database: DatabaseSync, folder: string): void {
  const gone = database
    .prepare('SELECT lane, min(seq) AS seq FROM records GROUP BY lane')
    .all()
    .map(({ lane, seq }) => ({ lane: Number(lane), seq: Number(seq), oldest: segmentsOf(folder, String(lane))[0] }))
    .filter(({ seq, oldest }) => oldest === undefined || seq < firstSeqOf(oldest))
  if (gone.length === 0) return
  inTransaction(database, () => {
    const entry = createEntry(database)
    for (const { lane, oldest } of gone) {
      entry.forget(lane, oldest === undefined ? undefined : firstSeqOf(oldest))
      if (oldest === undefined) database.prepare('DELETE FROM lanes WHERE lane = ?').run(lane)
    }
  })
}
