import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditRecord, parseRecord } from './record.ts'

/**
 * The layout of a log: `<folder>/<lane>/<first seq, 12 digits>.jsonl`, with `head`, `lock` and `reserve` in the lane's
 * folder, and `<folder>/audit.pub`. Each lane belongs to one process at a time, so several processes can share a
 * folder.
 */
export const segmentFileName = (firstSeq: number): string => `${String(firstSeq).padStart(12, '0')}.jsonl`

export const firstSeqOf = (file: string): number => Number.parseInt(file, 10)

export const publicKeyFile = (folder: string): string => join(folder, 'audit.pub')

/** A log's lanes in numeric order. Empty if the folder does not exist. */
export const listLanes = (folder: string): string[] =>
  (ifExists(() => readdirSync(folder)) ?? [])
    .filter((name) => /^[1-9]\d*$/.test(name))
    .sort((a, b) => Number(a) - Number(b))

/** A lane's segment files, oldest first. */
export const listSegments = (folder: string, lane: string): string[] =>
  (ifExists(() => readdirSync(join(folder, lane))) ?? [])
    .filter((name) => /^\d{12,}\.jsonl$/.test(name))
    .sort((a, b) => firstSeqOf(a) - firstSeqOf(b))

/** Runs `read`. Returns undefined if the file or folder does not exist. */
export function ifExists<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'

export const readIfExists = (path: string): string | undefined => ifExists(() => readFileSync(path, 'utf8'))

/** Reads at most `length` bytes from the start, the end or a position of a file. */
export function readPart(
  path: string,
  length: number,
  from: 'start' | 'end' | number,
): { readonly bytes: Buffer; readonly size: number } {
  const fd = openSync(path, 'r')
  try {
    const { size } = fstatSync(fd)
    const buffer = Buffer.alloc(Math.min(size, length))
    const position = { start: 0, end: size - buffer.length }
    const at = typeof from === 'number' ? from : position[from]
    return { bytes: buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, at)), size }
  } finally {
    closeSync(fd)
  }
}

export interface LogLine {
  readonly bytes: Buffer
  readonly offset: number
  /** False only for text after the last newline: a record that is still being written or was torn. */
  readonly whole: boolean
}

const chunkBytes = 256 * 1024
/** Max bytes per line. Toolway writes no line that long; longer lines are returned in pieces to limit memory. */
const maxLine = 1024 * 1024

/** Yields a file's lines in batches, so that readers do not have to await each line. */
export async function* readLines(path: string, from = 0): AsyncGenerator<readonly LogLine[]> {
  await using file = await open(path, 'r')
  let rest = Buffer.alloc(0)
  let offset = from
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, offset + rest.length)
    if (bytesRead === 0) break
    const read = chunk.subarray(0, bytesRead)
    const bytes = rest.length === 0 ? read : Buffer.concat([rest, read])
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
}

export interface StoredRecord {
  readonly lane: string
  readonly file: string
  readonly offset: number
  /** The length of the line with its newline: the next record starts at `offset + bytes`. */
  readonly bytes: number
  readonly text: string
  readonly record: AuditRecord
}

/** The record in a line of a lane's segment; undefined if the line is incomplete or is not a record. */
export function storedRecord(lane: string, file: string, { bytes, offset, whole }: LogLine): StoredRecord | undefined {
  const text = bytes.toString('utf8')
  const record = whole ? parseRecord(text) : undefined
  return record && { lane, file, offset, bytes: bytes.length + 1, text, record }
}

export type ReadPosition = Pick<StoredRecord, 'file' | 'offset'>

interface ReadOptions {
  /** Where to start in each lane. Default: the beginning, which is also used if retention removed the file. */
  readonly from?: Readonly<Record<string, ReadPosition>> | undefined
  readonly lanes?: readonly string[]
}

/**
 * Reads the records lane by lane, each lane in the order in which it was written. Safe while other processes write: an
 * incomplete record is left for the next read. Does not verify; lines that are not valid records are skipped.
 */
export async function* readRecords(
  folder: string,
  { from, lanes = listLanes(folder) }: ReadOptions = {},
): AsyncGenerator<StoredRecord> {
  for (const lane of lanes) {
    const start = from?.[lane]
    const files = listSegments(folder, lane).filter((file) => !start || firstSeqOf(file) >= firstSeqOf(start.file))
    for (const file of files) yield* readSegment(folder, lane, file, file === start?.file ? start.offset : 0)
  }
}

async function* readSegment(folder: string, lane: string, file: string, from: number): AsyncGenerator<StoredRecord> {
  try {
    for await (const lines of readLines(join(folder, lane, file), from)) {
      for (const line of lines) {
        const stored = storedRecord(lane, file, line)
        if (stored) yield stored
      }
    }
  } catch (error) {
    // Retention may remove a segment after it was listed, so a missing file is not an error.
    if (!isMissing(error)) throw error
  }
}
