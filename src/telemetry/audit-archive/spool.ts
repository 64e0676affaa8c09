import { randomUUID } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ArchiveRecord, ChainEnd, Spool } from '../../core/audit-archive.ts'
import { readHead } from '../audit/head.ts'
import { firstSeqOf, lanesOf, publicKeyFile, segmentsOf } from '../audit/layout.ts'
import { type Position, readRecords } from '../audit/read.ts'
import { archived } from './archived.ts'

/** Where somebody has read a lane up to. */
interface Place extends Position {
  readonly seq: number
}

/** The log in a folder, as whoever copies it elsewhere sees it. Others may be writing to it. */
export function openSpool(folder: string): Spool {
  let replica: string | undefined
  /** Where the last reading of each lane began and ended, so that the next one need not look for either. */
  const places = new Map<string, readonly Place[]>()

  /** Where to begin so that nothing after this number is passed over. */
  const startAt = (lane: string, after: number): Position | undefined => {
    const known = places.get(lane)?.findLast(({ seq }) => seq <= after)
    if (known) return known
    const file = segmentsOf(folder, lane).findLast((name) => firstSeqOf(name) <= after + 1)
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
      for (const lane of lanesOf(folder)) {
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
          records.push(archived(stored.record, stored.text))
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
