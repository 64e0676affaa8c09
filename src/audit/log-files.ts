import { readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditRecord, parseRecord } from './record.ts'

/**
 * Layout: `<folder>/<lane>/<first seq, 12 digits>.jsonl`, with `head`, `lock` and `reserve` in the lane's folder, and
 * `<folder>/audit.pub`. Each lane belongs to one process at a time, so several processes can share a folder.
 */
export const segmentFileName = (firstSeq: number): string => `${String(firstSeq).padStart(12, '0')}.jsonl`

export const firstSeqOf = (file: string): number => Number.parseInt(file, 10)

export const publicKeyFile = (folder: string): string => join(folder, 'audit.pub')

/** In numeric order; empty if the folder does not exist. */
export const listLanes = (folder: string): string[] =>
  names(folder)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .sort((a, b) => Number(a) - Number(b))

/** Oldest first. */
export const listSegments = (folder: string, lane: string): string[] =>
  names(join(folder, lane))
    .filter((name) => /^\d{12,}\.jsonl$/.test(name))
    .sort((a, b) => firstSeqOf(a) - firstSeqOf(b))

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export interface LogLine {
  readonly bytes: Buffer
  readonly offset: number
  /** False for bytes after the last newline: a record that is being written or was torn. */
  readonly whole: boolean
}

const chunkBytes = 256 * 1024
/** Far beyond any record. Longer lines are not ours; they are returned in pieces to bound memory. */
const maxLine = 1024 * 1024

/** Yields lines in batches, so that readers need not await each one. */
export async function* readLines(path: string, from = 0): AsyncGenerator<readonly LogLine[]> {
  const file = await open(path, 'r')
  try {
    let rest = Buffer.alloc(0)
    let offset = from
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      const { bytesRead } = await file.read(chunk, 0, chunkBytes, offset + rest.length)
      if (bytesRead === 0) break
      const bytes =
        rest.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([rest, chunk.subarray(0, bytesRead)])
      const lines: LogLine[] = []
      let start = 0
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        lines.push({ bytes: bytes.subarray(start, end), offset: offset + start, whole: true })
        start = end + 1
      }
      if (bytes.length - start > maxLine) {
        lines.push({ bytes: bytes.subarray(start), offset: offset + start, whole: true })
        start = bytes.length
      }
      rest = bytes.subarray(start)
      offset += start
      if (lines.length > 0) yield lines
    }
    if (rest.length > 0) yield [{ bytes: rest, offset, whole: false }]
  } finally {
    await file.close()
  }
}

export interface StoredRecord {
  readonly lane: string
  readonly file: string
  readonly offset: number
  /** Length of the line with its newline: the next record starts at `offset + bytes`. */
  readonly bytes: number
  readonly text: string
  readonly record: AuditRecord
}

/** A line that is not a valid record; `toolway audit verify` reports details. */
interface UnreadableLine {
  readonly lane: string
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

export interface ReadPosition {
  readonly file: string
  readonly offset: number
}

interface ReadOptions {
  /** By lane. Lanes not listed are read from the beginning, as are lanes whose file was removed by retention. */
  readonly from?: Readonly<Record<string, ReadPosition>>
  readonly lanes?: readonly string[]
  unreadable?(line: UnreadableLine): void
}

/**
 * Reads lane by lane, each in the order of writing. Safe while others write: an incomplete record is left for the next
 * read. Does not verify; lines that are not valid records are skipped.
 */
export async function* readRecords(folder: string, options: ReadOptions = {}): AsyncGenerator<StoredRecord> {
  for (const lane of options.lanes ?? listLanes(folder)) yield* readLane(folder, lane, options)
}

async function* readLane(folder: string, lane: string, options: ReadOptions): AsyncGenerator<StoredRecord> {
  const from = options.from?.[lane]
  for (const file of listSegments(folder, lane)) {
    if (from && firstSeqOf(file) < firstSeqOf(from.file)) continue
    try {
      for await (const lines of readLines(join(folder, lane, file), file === from?.file ? from.offset : 0)) {
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
      // Retention may remove a segment after it was listed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
