import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { ifExists, type StoredRecord, segmentFileName } from '../log-files.ts'
import { parseRecord } from '../record.ts'

export interface IndexedPosition {
  readonly lane: number
  readonly file: number
  readonly at: number
  readonly bytes: number
}

export interface SegmentReader extends Disposable {
  /** Reads a record. Undefined if it was removed or replaced. */
  read(place: IndexedPosition): StoredRecord | undefined
}

/** Bytes to read at once, because adjacent records are usually read together. */
const blockBytes = 64 * 1024
const maxOpen = 32

interface OpenFile {
  readonly fd: number
  start: number
  block: Buffer
}

export function createSegmentReader(folder: string): SegmentReader {
  const files = new Map<string, OpenFile>()

  const opened = (path: string): OpenFile => {
    const known = files.get(path)
    if (known) return known
    const [oldest] = files
    if (oldest && files.size >= maxOpen) {
      closeSync(oldest[1].fd)
      files.delete(oldest[0])
    }
    const file = { fd: openSync(path, 'r'), start: 0, block: Buffer.alloc(0) }
    files.set(path, file)
    return file
  }

  const bytesAt = (file: OpenFile, at: number, length: number): Buffer => {
    if (at < file.start || at + length > file.start + file.block.length) {
      // Read before and after the record, because readers go backwards as often as forwards.
      file.start = Math.max(0, at - blockBytes / 2)
      const buffer = Buffer.alloc(at + length - file.start + blockBytes / 2)
      file.block = buffer.subarray(0, readSync(file.fd, buffer, 0, buffer.length, file.start))
    }
    return file.block.subarray(at - file.start, at - file.start + length)
  }

  return {
    read({ lane, file: first, at, bytes }) {
      const file = segmentFileName(first)
      const line = ifExists(() => bytesAt(opened(join(folder, String(lane), file)), at, bytes))
      const text = line?.toString('utf8', 0, line.length - 1) ?? ''
      const record = line?.length === bytes && line[bytes - 1] === 10 ? parseRecord(text) : undefined
      return record && { lane: String(lane), file, offset: at, bytes, text, record }
    },
    [Symbol.dispose]() {
      for (const { fd } of files.values()) closeSync(fd)
      files.clear()
    },
  }
}
