import { closeSync, fstatSync, openSync, readSync, truncateSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { firstSeqOf, listSegments } from '../log-files.ts'
import { type AuditRecord, type GapRecord, parseSealedLine, zeroHash } from '../record.ts'
import { maxLine } from './event-body.ts'
import type { HeadState, LaneHead } from './head.ts'

/** `bytes` is the length of the valid part. */
export interface SegmentEnd {
  readonly file: string
  readonly bytes: number
}

export interface RecoveredLane {
  readonly seq: number
  readonly hash: string
  /** The last segment; writing continues in it unless `needsNewSegment` is set. */
  readonly segment: (SegmentEnd & { readonly openedMs: number }) | undefined
  readonly needsNewSegment: boolean
  readonly torn: number
  /** Number of records after the one in `head`. */
  readonly unproven: number
  /** Reported in the log as gap records. */
  readonly findings: readonly RecoveryFinding[]
}

export type RecoveryFinding = Pick<GapRecord, 'reason' | 'missing'>

/**
 * Finds the end of a lane that no process writes to, and truncates a record left half-written by a killed process.
 * Records that `head` confirms are never cut, however damaged: they stay for `verify`, and writing continues in a new
 * segment.
 */
export function recoverLane(folder: string, lane: string, read: HeadState): RecoveredLane {
  const head = read.state === 'read' ? read.head : undefined
  const found = lastSegment(folder, lane, head)
  if (!found) return withoutSegments(read)
  const { file, path, tail } = found
  const last = tail.last
  const missing = head && head.seq > (last?.seq ?? 0) ? { from: (last?.seq ?? 0) + 1, to: head.seq } : undefined
  const damaged = tail.bytes > tail.end && (!tail.torn || missing !== undefined)
  const torn = damaged ? 0 : tail.bytes - tail.end
  if (torn > 0) truncateSync(path, tail.end)
  const findings: RecoveryFinding[] = [
    ...(read.state === 'missing' ? [{ reason: 'head_missing' } as const] : []),
    ...(read.state === 'invalid' ? [{ reason: 'head_invalid' } as const] : []),
    ...(missing ? [{ reason: 'records_missing', missing } as const] : []),
    ...(head && last && head.seq === last.seq && head.hash !== last.hash
      ? [{ reason: 'records_changed' } as const]
      : []),
    ...(damaged || !last ? [{ reason: 'damaged' } as const] : []),
  ]
  const opened = readFirstRecord(path)
  return {
    // Skip every number that may have been used, so that none is used twice.
    seq: Math.max(last?.seq ?? firstSeqOf(file), head?.seq ?? 0),
    hash: last?.hash ?? zeroHash,
    segment: { file, bytes: tail.end, openedMs: opened ? Date.parse(opened.time) : 0 },
    needsNewSegment: damaged || missing !== undefined || !opened,
    torn,
    unproven: head && last ? Math.max(0, last.seq - head.seq) : 0,
    findings,
  }
}

function withoutSegments(read: HeadState): RecoveredLane {
  const head = read.state === 'read' && read.head.seq > 0 ? read.head : undefined
  const findings: RecoveryFinding[] = [
    ...(head ? [{ reason: 'records_missing', missing: { from: 1, to: head.seq } } as const] : []),
    ...(read.state === 'invalid' ? [{ reason: 'head_invalid' } as const] : []),
  ]
  return {
    seq: head?.seq ?? 0,
    hash: zeroHash,
    segment: undefined,
    needsNewSegment: true,
    torn: 0,
    unproven: 0,
    findings,
  }
}

interface Found {
  readonly file: string
  readonly path: string
  readonly tail: SegmentTail
}

/** The last segment that holds a record. Removes segments whose first record was never completed. */
function lastSegment(folder: string, lane: string, head: LaneHead | undefined): Found | undefined {
  for (const file of listSegments(folder, lane).reverse()) {
    const path = join(folder, lane, file)
    const tail = readSegmentTail(path)
    const neverCounted = head !== undefined && !tail.last && tail.torn && firstSeqOf(file) > head.seq
    if (!neverCounted) return { file, path, tail }
    unlinkSync(path)
  }
  return undefined
}

interface SegmentTail {
  /** The last complete record; undefined if there is none near the end. */
  readonly last: AuditRecord | undefined
  readonly end: number
  /** Length of the file; bytes after `end` are not a valid record. */
  readonly bytes: number
  /** The bytes after `end` are at most one torn record, which was never confirmed. */
  readonly torn: boolean
}

const windowBytes = 4 * maxLine

/** Reads only the end of the file, whatever its size. */
export function readSegmentTail(path: string): SegmentTail {
  const { bytes: text, size } = lastBytes(path)
  const base = size - text.length
  const newline = text.lastIndexOf(10)
  const fragment = newline + 1 < text.length
  const first = lineBefore(text, base, newline)
  if (first?.record) return { last: first.record, end: base + newline + 1, bytes: size, torn: fragment }
  if (!first) return { last: undefined, end: 0, bytes: size, torn: base === 0 }
  // The last line is not a valid record. If nothing follows it, it is the torn one.
  const second = fragment ? undefined : lineBefore(text, base, first.start - 1)
  if (second?.record) return { last: second.record, end: base + first.start, bytes: size, torn: true }
  return { last: undefined, end: 0, bytes: size, torn: base === 0 && first.start === 0 && !fragment }
}

/** The line that ends at `newline`; undefined if it does not start within this window. */
function lineBefore(text: Buffer, base: number, newline: number): { start: number; record?: AuditRecord } | undefined {
  if (newline < 0) return undefined
  const start = newline === 0 ? 0 : text.lastIndexOf(10, newline - 1) + 1
  if (start === 0 && base > 0) return undefined
  const opened = parseSealedLine(text.subarray(start, newline))
  return opened.ok ? { start, record: opened.record } : { start }
}

export function readFirstRecord(path: string): AuditRecord | undefined {
  const fd = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(maxLine)
    const text = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0))
    const opened = parseSealedLine(text.subarray(0, Math.max(0, text.indexOf(10))))
    return opened.ok ? opened.record : undefined
  } finally {
    closeSync(fd)
  }
}

function lastBytes(path: string): { bytes: Buffer; size: number } {
  const fd = openSync(path, 'r')
  try {
    const { size } = fstatSync(fd)
    const buffer = Buffer.alloc(Math.min(size, windowBytes))
    return { bytes: buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, size - buffer.length)), size }
  } finally {
    closeSync(fd)
  }
}
