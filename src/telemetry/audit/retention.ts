import { join } from 'node:path'
import type { Files } from './files.ts'
import type { Lane } from './lane.ts'
import { firstSeqOf, segmentsOf } from './layout.ts'
import type { AuditRecord } from './record.ts'
import { firstRecordOf, tailOf } from './tail.ts'

/** How long records are kept. */
export interface Age {
  readonly nowMs: number
  readonly retainMs: number
  /** Up to here a lane was copied elsewhere; undefined where nobody copies it. */
  copied?(lane: string): number
}

/** Which segments of a lane are old enough. */
export interface Expired {
  /** To be removed, oldest first. */
  readonly segments: readonly string[]
  /** Old as well, but not copied yet. */
  readonly held: number
  /** Among those to be removed: not copied yet, and twice as old as they were to become. */
  readonly uncopied: number
}

/**
 * What is old is removed, never the last segment. Where the log is copied elsewhere, what is not there yet is kept for
 * longer; but for no more than the same time again, since a disk that is full would stop everything.
 */
export function expiredSegments(folder: string, lane: string, { nowMs, retainMs, copied }: Age): Expired {
  const files = segmentsOf(folder, lane)
  const old = olderThan(folder, lane, files, nowMs, retainMs)
  if (!copied || old === 0) return { segments: files.slice(0, old), held: 0, uncopied: 0 }
  const there = copied(lane)
  const done = files.slice(1, old + 1).filter((next) => firstSeqOf(next) - 1 <= there).length
  const overdue = done < old ? olderThan(folder, lane, files, nowMs, 2 * retainMs) : 0
  const count = Math.max(done, overdue)
  return { segments: files.slice(0, count), held: old - count, uncopied: count - done }
}

/** How many of them, oldest first, have no record that is younger. */
function olderThan(folder: string, lane: string, files: readonly string[], nowMs: number, ageMs: number): number {
  const pathOf = (file: string | undefined) => join(folder, lane, file as string)
  const isPast = (record: AuditRecord | undefined) => record !== undefined && Date.parse(record.time) <= nowMs
  const fresh = files.findIndex((file, index) => {
    if (index === files.length - 1) return true
    const last = tailOf(pathOf(file)).last
    // What says that it is of the future was written by a wrong clock: it is older than what came after it.
    const newest = isPast(last) ? last : firstRecordOf(pathOf(files[index + 1]))
    return !newest || Date.parse(newest.time) >= nowMs - ageMs
  })
  return Math.max(0, fresh)
}

/**
 * Removes segments. The log says so first, on disk and signed: segments that are missing without such a record were
 * removed by somebody else.
 */
export async function removeSegments(
  folder: string,
  lane: Lane,
  segments: readonly string[],
  files: Files,
): Promise<void> {
  const [oldest] = segments
  if (oldest === undefined) return
  const first = segmentsOf(folder, lane.name)[segments.length] as string
  const removed = { from: firstSeqOf(oldest), to: firstSeqOf(first) - 1 }
  await lane.commit.wait(lane.chain.appendOwn({ operation: 'retention', removed }))
  for (const file of segments) files.unlinkSync(join(folder, lane.name, file))
}
