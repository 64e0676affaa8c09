import { randomUUID } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ArchivedRecord,
  type ArchiveName,
  type ArchiveRecord,
  archiveNames,
  type ChainEnd,
  type Spool,
} from '../../core/audit-archive.ts'
import { firstSeqOf, listLanes, listSegments, publicKeyFile, type ReadPosition, readRecords } from '../log-files.ts'
import type { AuditRecord } from '../record.ts'
import { isGap, searchableText } from '../search/rows.ts'
import { readHead } from '../write/head.ts'

/** Where somebody has read a lane up to. */
interface Place extends ReadPosition {
  readonly seq: number
}

/** The log in a folder, as whoever copies it elsewhere sees it. Others may be writing to it. */
export function openSpool(folder: string): Spool {
  let replica: string | undefined
  /** Where the last reading of each lane began and ended, so that the next one need not look for either. */
  const places = new Map<string, readonly Place[]>()

  /** Where to begin so that nothing after this number is passed over. */
  const startAt = (lane: string, after: number): ReadPosition | undefined => {
    const known = places.get(lane)?.findLast(({ seq }) => seq <= after)
    if (known) return known
    const file = listSegments(folder, lane).findLast((name) => firstSeqOf(name) <= after + 1)
    return file === undefined ? undefined : { file, offset: 0 }
  }

  return {
    // Asked for when there is something to copy: a disk that is full now must not keep anybody from starting.
    get replica() {
      replica ??= replicaOf(folder)
      return replica
    },
    publicKeys: () => textOfFile(publicKeyFile(folder)) ?? '',
    lanes: () => {
      const ends = new Map<string, ChainEnd>()
      for (const lane of listLanes(folder)) {
        const read = readHead(folder, lane, undefined)
        // One that is being rewritten right now is whole the next time.
        if (read.state === 'read' && read.head.seq > 0) ends.set(lane, read.head)
      }
      return ends
    },
    async read(lane, after, most) {
      const head = readHead(folder, lane, undefined)
      if (head.state !== 'read') return []
      const from = startAt(lane, after)
      const records: ArchiveRecord[] = []
      let first: Place | undefined
      let last: Place | undefined
      for await (const stored of readRecords(folder, { lanes: [lane], ...(from && { from: { [lane]: from } }) })) {
        const { seq } = stored.record
        // Not on disk yet; or no number of ours, and then what follows must not wait for it.
        if (seq > head.head.seq) continue
        if (seq > after) {
          first ??= { file: stored.file, offset: stored.offset, seq: after }
          records.push(toArchiveRecord(stored.record, stored.text))
        }
        last = { file: stored.file, offset: stored.offset + stored.bytes, seq }
        if (records.length >= most) break
      }
      if (last) places.set(lane, first ? [first, last] : [last])
      return records
    },
  }
}

/** The name of the log in this folder, if it has one. */
const knownReplica = (folder: string): string | undefined => textOfFile(replicaFile(folder))?.trim()

export const replicaFile = (folder: string): string => join(folder, 'replica')

/** Made by whoever comes first. A copy of the folder has the same name, and must not be written to as well. */
function replicaOf(folder: string): string {
  const known = knownReplica(folder)
  if (known) return known
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const made = `${replicaFile(folder)}.${process.pid}`
  writeFileSync(made, `${randomUUID()}\n`, { mode: 0o600 })
  try {
    // Whole or not at all, and never over another one.
    linkSync(made, replicaFile(folder))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(made)
  }
  return knownReplica(folder) as string
}

function textOfFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A record as an archive keeps it. */
function toArchiveRecord(record: AuditRecord, line: string): ArchiveRecord {
  const fields = record as Partial<Record<ArchiveName, string>>
  const names = archiveNames.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]]))
  const time = Date.parse(record.time)
  return {
    seq: record.seq,
    hash: record.hash,
    prev: record.prev,
    time: Number.isNaN(time) ? 0 : time,
    line,
    phase: record.phase ?? null,
    gap: isGap(record),
    is_error: record.phase === 'after' && Boolean(record.is_error),
    names: Object.fromEntries(names),
    words: record.phase === 'before' ? searchableText(record.arguments) : '',
  }
}

/** By what an archive finds a record that the record itself does not say; undefined where all is right. */
export function findArchiveMismatch(record: AuditRecord, filed: ArchivedRecord): string | undefined {
  const own = toArchiveRecord(record, filed.line)
  const wrong = archiveNames.find((name) => !isSame(own.names[name] ?? null, filed.names[name]))
  if (wrong) return wrong
  if (own.time !== filed.time) return 'time'
  if (own.is_error !== filed.is_error) return 'is_error'
  if (!isSame(own.words, filed.words)) return 'arguments'
  // A beginning is hidden by its end, which may be anywhere; all else is hidden by nothing.
  return own.phase !== 'before' && filed.shown !== (own.phase === 'after' || own.gap) ? 'operation' : undefined
}

/** A store may not be able to keep every text as it is: such are not compared. */
const isSame = (own: string | null, filed: string | null): boolean =>
  own === filed || (own !== null && (own.length > maxName || own.includes('\0') || !own.isWellFormed()))

const maxName = 512
