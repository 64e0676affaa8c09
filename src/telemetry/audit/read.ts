import { join } from 'node:path'
import { firstSeqOf, lanesOf, segmentsOf } from './layout.ts'
import { linesOf } from './lines.ts'
import { parseRecord } from './parse-record.ts'
import type { AuditRecord } from './record.ts'

/** A record and where it stands. */
export interface StoredRecord {
  readonly lane: string
  /** The name of the segment inside the lane's folder. */
  readonly file: string
  /** Of the first byte of its line in that file. */
  readonly offset: number
  /** How long its line is, newline included: the next record stands at `offset + bytes`. */
  readonly bytes: number
  /** The line itself, without its newline. */
  readonly text: string
  readonly record: AuditRecord
}

/** A line that is no record: `toolway audit verify` says more about it. */
export interface UnreadableLine {
  readonly lane: string
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

/** Up to where somebody has read a lane: the file and the position of the next byte. */
export interface Position {
  readonly file: string
  readonly offset: number
}

export interface ReadOptions {
  /** By lane; a lane that is not named is read from its beginning, as is one whose file retention has removed. */
  readonly from?: Readonly<Record<string, Position>>
  readonly lanes?: readonly string[]
  unreadable?(line: UnreadableLine): void
}

/**
 * The records of all lanes, lane by lane, each in the order it was written. It may run while others write: a record
 * that is not complete yet is left for the next time. It does not verify; what is not JSON is passed over.
 */
export async function* readRecords(folder: string, options: ReadOptions = {}): AsyncGenerator<StoredRecord> {
  for (const lane of options.lanes ?? lanesOf(folder)) yield* readLane(folder, lane, options)
}

async function* readLane(folder: string, lane: string, options: ReadOptions): AsyncGenerator<StoredRecord> {
  const from = options.from?.[lane]
  for (const file of segmentsOf(folder, lane)) {
    if (from && firstSeqOf(file) < firstSeqOf(from.file)) continue
    try {
      for await (const lines of linesOf(join(folder, lane, file), file === from?.file ? from.offset : 0)) {
        for (const line of lines) {
          if (!line.whole) continue
          const place = { lane, file, offset: line.offset, bytes: line.bytes.length + 1 }
          const text = line.bytes.toString('utf8')
          const record = parseRecord(text)
          if (record) yield { ...place, text, record }
          else options.unreadable?.(place)
        }
      }
    } catch (error) {
      // Retention may remove a segment between the listing and its turn.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
