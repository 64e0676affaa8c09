import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { firstSeqOf, listLanes, listSegments } from '../log-files.ts'
import type { AuditRecord } from '../record.ts'
import type { FileSystem } from './file-system.ts'
import { readFirstRecord, readSegmentTail } from './recover.ts'
import {
  type AuditWriter,
  openWriter,
  recordStart,
  type StartOptions,
  tryLockLane,
  type WriterOptions,
} from './writer.ts'

/** How long records are kept. */
export interface RetentionAge {
  readonly nowMs: number
  readonly retainMs: number
  /** Up to here a lane was copied elsewhere; undefined where nobody copies it. */
  copied?(lane: string): number
}

/** Which segments of a lane are old enough. */
export interface ExpiredSegments {
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

/** How many of them, oldest first, have no record that is younger. */
function olderThan(folder: string, lane: string, files: readonly string[], nowMs: number, ageMs: number): number {
  const pathOf = (file: string | undefined) => join(folder, lane, file as string)
  const isPast = (record: AuditRecord | undefined) => record !== undefined && Date.parse(record.time) <= nowMs
  const fresh = files.findIndex((file, index) => {
    if (index === files.length - 1) return true
    const last = readSegmentTail(pathOf(file)).last
    // What says that it is of the future was written by a wrong clock: it is older than what came after it.
    const newest = isPast(last) ? last : readFirstRecord(pathOf(files[index + 1]))
    return !newest || Date.parse(newest.time) >= nowMs - ageMs
  })
  return Math.max(0, fresh)
}

/**
 * Removes segments. The log says so first, on disk and signed: segments that are missing without such a record were
 * removed by somebody else.
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
  /** The lane of this process, if it has one. */
  own(): AuditWriter | undefined
  /** Makes room for one more record, where a full disk was the reason of this error. */
  releaseReserve(lane: AuditWriter, error: unknown): boolean
}

/** Removes what is old from all lanes that nobody else is writing to. Never rejects: what fails is tried again later. */
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
    log.warn({ error: String(error) }, 'old audit records could not be removed; it is tried again later')
  }
}

async function applyToOwnLane(own: AuditWriter, age: RetentionAge, options: RetentionOptions): Promise<void> {
  own.chain.rotateIfOld()
  try {
    await remove(own, age, options)
  } catch (error) {
    // Removing something is what helps a full disk most.
    if (!options.releaseReserve(own, error)) throw error
    await remove(own, age, options)
  }
}

/** A lane whose process is gone has nobody else who would remove what is old. */
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
    const why = 'audit records older than audit.retain are kept, since they are not copied yet'
    log.warn({ ...of, segments: held }, `${why}; they go when they are twice as old`)
  }
  if (uncopied > 0) {
    log.error({ ...of, segments: uncopied }, 'removing audit records that were never copied: they are too old to wait')
  }
  await removeSegments(folder, lane, segments, files)
  if (segments.length > 0) {
    log.info({ ...of, segments: segments.length }, 'removed audit records that are older than audit.retain')
  }
}
