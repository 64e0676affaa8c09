import { randomUUID } from 'node:crypto'
import { linkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ArchivedRecord,
  type ArchiveName,
  type ArchiveRecord,
  archiveNames,
  type ChainEnd,
  type Spool,
} from '../../core/audit-archive.ts'
import { makeFolder } from '../../lib/files.ts'
import {
  firstSeqOf,
  listLanes,
  listSegments,
  publicKeyFile,
  type ReadPosition,
  readIfExists,
  readRecords,
} from '../log-files.ts'
import type { AuditRecord } from '../record.ts'
import { isGap, searchableText } from '../search/index-file.ts'
import { readHead } from '../write/head.ts'

type NumberedPosition = ReadPosition & { readonly seq: number }

/** Reads the log in a folder, to copy it to an archive. Safe while other processes write. */
export function openSpool(folder: string): Spool {
  let replica: string | undefined
  /** The start and end positions of each lane's last read, so that the next read does not search for them. */
  const places = new Map<string, readonly NumberedPosition[]>()

  /** A position from which a read misses no record with a number above `after`. */
  const startAt = (lane: string, after: number): ReadPosition | undefined => {
    const known = places.get(lane)?.findLast(({ seq }) => seq <= after)
    if (known) return known
    const file = listSegments(folder, lane).findLast((name) => firstSeqOf(name) <= after + 1)
    return file === undefined ? undefined : { file, offset: 0 }
  }

  return {
    // Create the ID on first use: a full disk must not prevent the gateway from starting.
    get replica() {
      replica ??= replicaOf(folder)
      return replica
    },
    publicKeys: () => readIfExists(publicKeyFile(folder)) ?? '',
    lanes: () => {
      const ends = new Map<string, ChainEnd>()
      for (const lane of listLanes(folder)) {
        const read = readHead(folder, lane, undefined)
        // Skip a head that is being rewritten. The next call reads it.
        if (read.state === 'read' && read.head.seq > 0) ends.set(lane, read.head)
      }
      return ends
    },
    async read(lane, after, limit) {
      const head = readHead(folder, lane, undefined)
      if (head.state !== 'read') return []
      const from = startAt(lane, after)
      const records: ArchiveRecord[] = []
      let first: NumberedPosition | undefined
      let last: NumberedPosition | undefined
      for await (const stored of readRecords(folder, { lanes: [lane], from: from && { [lane]: from } })) {
        const { seq } = stored.record
        // Skip a record that is not on disk yet, or that Toolway did not write, instead of stopping at it.
        if (seq > head.head.seq) continue
        if (seq > after) {
          first ??= { file: stored.file, offset: stored.offset, seq: after }
          records.push(toArchiveRecord(stored.record, stored.text))
        }
        last = { file: stored.file, offset: stored.offset + stored.bytes, seq }
        if (records.length >= limit) break
      }
      if (last) places.set(lane, first ? [first, last] : [last])
      return records
    },
  }
}

const replicaFile = (folder: string): string => join(folder, 'replica')

export const readReplica = (folder: string): string | undefined => readIfExists(replicaFile(folder))?.trim()

/** The replica's ID, created by the first process. A copy of the folder has the same ID: use only one of the two. */
function replicaOf(folder: string): string {
  const known = readReplica(folder)
  if (known) return known
  makeFolder(folder)
  const path = replicaFile(folder)
  const temporary = `${path}.${process.pid}`
  try {
    writeFileSync(temporary, `${randomUUID()}\n`, { mode: 0o600 })
    // A link is created atomically and never replaces an existing file.
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
  return readReplica(folder) as string
}

function toArchiveRecord(record: AuditRecord, line: string): ArchiveRecord {
  const fields = record as Partial<Record<ArchiveName, string>>
  const names = archiveNames.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]])
  const { seq, hash, prev } = record
  return {
    ...{ seq, hash, prev, line },
    time: Date.parse(record.time) || 0,
    phase: record.phase ?? null,
    gap: isGap(record),
    is_error: record.phase === 'after' && Boolean(record.is_error),
    names: Object.fromEntries(names),
    words: record.phase === 'before' ? searchableText(record.arguments) : '',
  }
}

/** The first indexed field that does not match the record. Undefined if all of them match. */
export function findArchiveMismatch(record: AuditRecord, filed: ArchivedRecord): string | undefined {
  const own = toArchiveRecord(record, filed.line)
  const wrong = archiveNames.find((name) => !isSame(own.names[name] ?? null, filed.names[name]))
  if (wrong) return wrong
  if (own.time !== filed.time) return 'time'
  if (own.is_error !== filed.is_error) return 'is_error'
  if (!isSame(own.words, filed.words)) return 'arguments'
  // Do not compare `shown` for a beginning: it is cleared once the operation's end is recorded, and the end may be
  // anywhere in the archive. It never changes for other records.
  return own.phase !== 'before' && filed.shown !== (own.phase === 'after' || own.gap) ? 'operation' : undefined
}

/** Whether two strings are equal. A string that a store may be unable to store unchanged always counts as equal. */
const isSame = (own: string | null, filed: string | null): boolean =>
  own === filed || (own !== null && (own.length > maxName || own.includes('\0') || !own.isWellFormed()))

const maxName = 512
