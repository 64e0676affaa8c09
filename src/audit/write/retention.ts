import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { firstSeqOf, listLanes, listSegments } from '../log-files.ts'
import type { AuditRecord } from '../record.ts'
import type { FileSystem } from './log-file.ts'
import { readFirstRecord, readSegmentTail } from './recover.ts'
import {
  type AuditWriter,
  openWriter,
  recordStart,
  type StartOptions,
  tryLockLane,
  type WriterOptions,
} from './writer.ts'

export interface RetentionAge {
  readonly nowMs: number
  readonly retainMs: number
  /** Last record of the lane that was copied to the archive; undefined without an archive. */
  copied?(lane: string): number
}

export interface ExpiredSegments {
  readonly segments: readonly string[]
  /** Number of old segments kept because they are not copied yet. */
  readonly held: number
  /** Number of segments to remove uncopied, because they are older than twice the retention time. */
  readonly uncopied: number
}

/**
 * Never removes the last segment. Segments that are not copied yet are kept for up to twice the retention time; after
 * that they are removed, because a full disk would stop all recording.
 */
function expiredSegments(folder: string, lane: string, { nowMs, retainMs, copied }: RetentionAge): ExpiredSegments {
  const files = listSegments(folder, lane)
  const old = olderThan(folder, lane, files, nowMs, retainMs)
  if (!copied || old === 0) return { segments: files.slice(0, old), held: 0, uncopied: 0 }
  const there = copied(lane)
  const done = files.slice(1, old + 1).filter((next) => firstSeqOf(next) - 1 <= there).length
  const overdue = done < old ? olderThan(folder, lane, files, nowMs, 2 * retainMs) : 0
  const count = Math.max(done, overdue)
  return { segments: files.slice(0, count), held: old - count, uncopied: count - done }
}

function olderThan(folder: string, lane: string, files: readonly string[], nowMs: number, ageMs: number): number {
  const pathOf = (file: string | undefined) => join(folder, lane, file as string)
  const isPast = (record: AuditRecord | undefined) => record !== undefined && Date.parse(record.time) <= nowMs
  const fresh = files.findIndex((file, index) => {
    if (index === files.length - 1) return true
    const last = readSegmentTail(pathOf(file)).last
    // A time in the future comes from a wrong clock; use the next segment's first record as the upper bound.
    const newest = isPast(last) ? last : readFirstRecord(pathOf(files[index + 1]))
    return !newest || Date.parse(newest.time) >= nowMs - ageMs
  })
  return Math.max(0, fresh)
}

/**
 * Writes a signed record to disk before it removes anything: `verify` treats segments that are missing without such a
 * record as tampering.
 */
async function removeSegments(
  folder: string,
  lane: AuditWriter,
  segments: readonly string[],
  files: FileSystem,
): Promise<void> {
  const [oldest] = segments
  if (oldest === undefined) return
  const first = listSegments(folder, lane.name)[segments.length] as string
  const removed = { from: firstSeqOf(oldest), to: firstSeqOf(first) - 1 }
  await lane.commit.wait(lane.chain.appendControl({ operation: 'retention', removed }))
  for (const file of segments) files.unlinkSync(join(folder, lane.name, file))
}

interface RetentionOptions extends Omit<WriterOptions, 'failed' | 'lost'>, StartOptions, Pick<RetentionAge, 'copied'> {
  readonly clock: Clock
  readonly retainMs: number
  own(): AuditWriter | undefined
  /** Releases the disk reserve if the error is a full disk. */
  releaseReserve(lane: AuditWriter, error: unknown): boolean
}

/** Removes old segments of all lanes that no other process is writing to. Never rejects; failures are retried later. */
export async function applyRetention(options: RetentionOptions): Promise<void> {
  const { folder, clock, log } = options
  const age: RetentionAge = {
    nowMs: clock.now(),
    retainMs: options.retainMs,
    ...(options.copied && { copied: options.copied }),
  }
  try {
    const own = options.own()
    if (own) await applyToOwnLane(own, age, options)
    for (const name of listLanes(folder)) {
      if (name !== own?.name && expiredSegments(folder, name, age).segments.length > 0) {
        await applyToUnusedLane(name, age, options)
      }
    }
  } catch (error) {
    log.warn({ error: String(error) }, 'could not remove old audit records; retrying later')
  }
}

async function applyToOwnLane(own: AuditWriter, age: RetentionAge, options: RetentionOptions): Promise<void> {
  own.chain.rotateIfOld()
  try {
    await remove(own, age, options)
  } catch (error) {
    // Removing segments frees space, so it may use the reserve.
    if (!options.releaseReserve(own, error)) throw error
    await remove(own, age, options)
  }
}

async function applyToUnusedLane(name: string, age: RetentionAge, options: RetentionOptions): Promise<void> {
  const claim = tryLockLane(options.folder, name)
  if (!claim) return
  const lane = openWriter(claim, { ...options, failed: () => {}, lost: () => {} })
  try {
    recordStart(lane, options)
    await remove(lane, age, options)
    await lane.commit.wait(lane.chain.appendControl({ operation: 'checkpoint', final: true }))
  } finally {
    lane.close()
  }
}

async function remove(lane: AuditWriter, age: RetentionAge, { folder, files, log }: RetentionOptions): Promise<void> {
  const { segments, held, uncopied } = expiredSegments(folder, lane.name, age)
  const of = { lane: lane.name }
  if (held > 0) {
    const why = 'keeping audit records older than audit.retain because they have not been copied to PostgreSQL yet'
    log.warn({ ...of, segments: held }, `${why}; they are removed at twice that age`)
  }
  if (uncopied > 0) {
    log.error(
      { ...of, segments: uncopied },
      'removing audit records that were never copied to PostgreSQL: they are more than twice as old as audit.retain',
    )
  }
  await removeSegments(folder, lane, segments, files)
  if (segments.length > 0) {
    log.info({ ...of, segments: segments.length }, 'removed audit records older than audit.retain')
  }
}
