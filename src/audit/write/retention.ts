import { join } from 'node:path'
import type { SeenTime } from '../../core/seen-time.ts'
import { firstSeqOf, ifExists, listLanes, listSegments } from '../log-files.ts'
import { openMark, readHead } from './head.ts'
import { readFirstRecord, readSegmentTail } from './recover.ts'
import { type AuditWriter, openWriter, recordStart, tryLockLane, type WriterOptions } from './writer.ts'

interface ApplyOptions extends Omit<WriterOptions, 'failed' | 'lost'> {
  readonly version: string
  readonly retainMs: number
  readonly seen: SeenTime
  /** The number of the lane's last record that was copied to the archive. Undefined without an archive. */
  copied?(lane: string): number
  own(): AuditWriter | undefined
  /** Releases the disk reserve if the error is due to a full disk, and returns whether it did. */
  releaseReserve(writer: AuditWriter, error: unknown): boolean
}

interface RetentionOptions extends ApplyOptions {
  /** When segments of all lanes began, the newest first. Read once, when it is first needed. */
  startTimes(): readonly number[]
}

/**
 * Removes old segments from lanes that no other process is writing to, and marks those lanes if necessary. Never
 * rejects; failures are retried later.
 */
export async function applyRetention(applied: ApplyOptions): Promise<void> {
  const { folder, log, seen } = applied
  const nowMs = applied.clock.now()
  let times: readonly number[] | undefined
  const options = { ...applied, startTimes: () => (times ??= startTimes(folder, seen.maxGapMs)) }
  try {
    const own = options.own()
    if (own) await applyToOwnLane(own, nowMs, options)
    for (const lane of listLanes(folder).filter((name) => name !== own?.name)) {
      if (expiredSegments(lane, nowMs, options).segments.length > 0) await applyToUnusedLane(lane, nowMs, options)
      else if (own) markUnusedLane(lane, options)
    }
  } catch (error) {
    log.warn({ err: error }, 'could not remove old audit records; retrying later')
  }
}

async function applyToOwnLane(own: AuditWriter, nowMs: number, options: RetentionOptions): Promise<void> {
  own.chain.rotateIfOld()
  try {
    await remove(own, nowMs, options)
  } catch (error) {
    // Removing segments frees space, so it may use the disk reserve.
    if (!options.releaseReserve(own, error)) throw error
    await remove(own, nowMs, options)
  }
}

async function applyToUnusedLane(lane: string, nowMs: number, options: RetentionOptions): Promise<void> {
  const lock = tryLockLane(options.folder, lane)
  if (!lock) return
  const writer = openWriter(lock, { ...options, failed: () => {}, lost: () => {} })
  try {
    recordStart(writer, options)
    await remove(writer, nowMs, options)
    await writer.commit.wait(writer.chain.appendControl({ operation: 'checkpoint', final: true }))
  } finally {
    writer.close()
  }
}

/** Writes the high-water mark of a lane that has none because version 0.1.0 wrote it. */
function markUnusedLane(lane: string, options: RetentionOptions): void {
  const { folder, marks, signer } = options
  if (marks === undefined || readHead(marks, lane, signer).state !== 'missing') return
  using lock = tryLockLane(folder, lane)
  const read = readHead(folder, lane, signer)
  if (lock && read.state === 'read') openMark(lane, options, read.head)?.close()
}

async function remove(writer: AuditWriter, nowMs: number, options: RetentionOptions): Promise<void> {
  const { folder, files, log } = options
  const lane = writer.name
  const { segments, held, uncopied, next } = expiredSegments(lane, nowMs, options)
  if (held > 0) {
    const why = 'keeping audit records older than audit.retain because they have not been copied yet'
    log.warn({ lane, segments: held }, `${why}; they are removed at twice that age`)
  }
  if (uncopied > 0) {
    const message = 'removing audit records that were never copied: they are far older than audit.retain'
    log.error({ lane, segments: uncopied }, message)
  }
  const [oldest] = segments
  if (oldest === undefined) return
  // Write this record first: `verify` treats segments that are missing without it as tampering.
  const removed = { from: firstSeqOf(oldest), to: firstSeqOf(next) - 1 }
  await writer.commit.wait(writer.chain.appendControl({ operation: 'retention', removed }))
  for (const file of segments) files.unlinkSync(join(folder, lane, file))
  log.info({ lane, segments: segments.length }, 'removed audit records older than audit.retain')
}

/**
 * Finds the segments to remove, never the last one. Segments that have not been copied yet are kept for up to twice the
 * retention time (`held` counts them), then removed (`uncopied`), because a full disk would stop all recording. `next`
 * is the first segment that stays.
 */
function expiredSegments(
  lane: string,
  nowMs: number,
  { folder, retainMs, seen, copied, startTimes }: RetentionOptions,
) {
  const files = listSegments(folder, lane)
  const countOld = (ageMs: number) => {
    const count = (beforeMs: number) => countOlder(join(folder, lane), files, nowMs, beforeMs)
    // Usually, the clock alone shows that there are none.
    return count(nowMs - ageMs) === 0 ? 0 : count(seen.before(ageMs, startTimes()))
  }
  const old = countOld(retainMs)
  const copiedTo = old > 0 ? copied?.(lane) : undefined
  const done =
    copiedTo === undefined ? old : files.slice(1, old + 1).filter((next) => firstSeqOf(next) - 1 <= copiedTo).length
  const overdue = done < old ? countOld(2 * retainMs) : 0
  const count = Math.max(done, overdue)
  return { segments: files.slice(0, count), held: old - count, uncopied: count - done, next: files[count] as string }
}

/**
 * When the segments of all lanes began, the newest first. There is one for each day on which anything was recorded. Of
 * many in `gapMs`, only the first and the last are read. Segments that another process removes meanwhile and lanes that
 * cannot be read are left out: without them, records are kept for longer.
 */
function startTimes(folder: string, gapMs: number): number[] {
  const times = listLanes(folder).flatMap((lane) => {
    try {
      const files = listSegments(folder, lane)
      return startTimesBetween((index) => startOf(join(folder, lane, files[index] as string)), files.length, gapMs)
    } catch {
      return []
    }
  })
  return times.filter((time) => !Number.isNaN(time)).sort((one, another) => another - one)
}

const startOf = (path: string): number => Date.parse(ifExists(() => readFirstRecord(path))?.time ?? '')

function startTimesBetween(startAt: (index: number) => number, count: number, gapMs: number): number[] {
  const between = (low: number, first: number, high: number, last: number): number[] => {
    if (high - low < 2 || Math.abs(last - first) <= gapMs) return []
    const middle = (low + high) >> 1
    const time = startAt(middle)
    return [...between(low, first, middle, time), time, ...between(middle, time, high, last)]
  }
  if (count < 2) return count === 0 ? [] : [startAt(0)]
  const [first, last] = [startAt(0), startAt(count - 1)]
  return [first, ...between(0, first, count - 1, last), last]
}

function countOlder(folder: string, files: readonly string[], nowMs: number, beforeMs: number): number {
  const fresh = files.findIndex((file, index) => {
    const next = files[index + 1]
    if (next === undefined) return true
    const { last } = readSegmentTail(join(folder, file))
    // If the last record's time is in the future, the clock was wrong: use the next segment's first record.
    const newest = last !== undefined && Date.parse(last.time) <= nowMs ? last : readFirstRecord(join(folder, next))
    return !newest || Date.parse(newest.time) >= beforeMs
  })
  return Math.max(0, fresh)
}
