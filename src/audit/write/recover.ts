import { truncateSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ChainEnd } from '../../core/audit-archive.ts'
import { firstSeqOf, listSegments, readPart } from '../log-files.ts'
import { type AuditRecord, type GapRecord, maxLine, parseSealedLine, zeroHash } from '../record.ts'
import type { HeadState, LogHead } from './head.ts'
import type { Segment } from './segment-file.ts'

export interface RecoveredLane extends ChainEnd {
  /** The last segment, with the length of its valid part. Writing continues in it unless `needsNewSegment` is set. */
  readonly segment: Pick<Segment, 'file' | 'bytes' | 'openedMs'> | undefined
  readonly needsNewSegment: boolean
  readonly torn: number
  /** The last record of a process that did not close the lane; undefined if it was closed. */
  readonly killed?: KilledProcess | undefined
  /** The number of records after the one in `head`. */
  readonly unproven: number
  /** Problems that were found. They are reported in the log as gap records. */
  readonly findings: readonly RecoveryFinding[]
}

export interface KilledProcess {
  readonly lane: string
  /** The time and number of its last record. */
  readonly time: string
  readonly seq: number
}

type RecoveryFinding = Pick<GapRecord, 'reason' | 'missing'>

/**
 * Finds the end of a lane that no process is writing to, and cuts off a record that a killed process left half-written.
 * Records that `head` confirms are never cut off, however damaged they are: they are kept for `verify`, and writing
 * continues in a new segment.
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
  const findings: RecoveryFinding[] = []
  if (read.state === 'missing') findings.push({ reason: 'head_missing' })
  if (read.state === 'invalid') findings.push({ reason: 'head_invalid' })
  if (missing) findings.push({ reason: 'records_missing', missing })
  if (head && head.seq === last?.seq && head.hash !== last.hash) findings.push({ reason: 'records_changed' })
  if (damaged || !last) findings.push({ reason: 'damaged' })
  const opened = readFirstRecord(path)
  return {
    // Skip every number that may have been used, so that no number is used twice.
    seq: Math.max(last?.seq ?? firstSeqOf(file), head?.seq ?? 0),
    hash: last?.hash ?? zeroHash,
    segment: { file, bytes: tail.end, openedMs: opened ? Date.parse(opened.time) : 0 },
    needsNewSegment: damaged || missing !== undefined || !opened,
    torn,
    killed: last && !('final' in last && last.final) ? { lane, time: last.time, seq: last.seq } : undefined,
    unproven: head && last ? Math.max(0, last.seq - head.seq) : 0,
    findings,
  }
}

function withoutSegments(read: HeadState): RecoveredLane {
  const seq = read.state === 'read' ? read.head.seq : 0
  const findings: RecoveryFinding[] = []
  if (seq > 0) findings.push({ reason: 'records_missing', missing: { from: 1, to: seq } })
  if (read.state === 'invalid') findings.push({ reason: 'head_invalid' })
  return { seq, hash: zeroHash, segment: undefined, needsNewSegment: true, torn: 0, unproven: 0, findings }
}

/** The last segment that holds a record. Removes segments whose first record was never completed. */
function lastSegment(folder: string, lane: string, head: LogHead | undefined) {
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
  /** The last complete record. Undefined if there is none near the end. */
  readonly last: AuditRecord | undefined
  readonly end: number
  /** The length of the file. Bytes after `end` are not a valid record. */
  readonly bytes: number
  /** Whether the bytes after `end` are at most one torn record, which was never confirmed. */
  readonly torn: boolean
}

const windowBytes = 4 * maxLine

/** Finds a file's last record. Reads only the end of the file, even if the file is large. */
export function readSegmentTail(path: string): SegmentTail {
  const { bytes: text, size } = readPart(path, windowBytes, 'end')
  const base = size - text.length
  const newline = text.lastIndexOf(10)
  const fragment = newline + 1 < text.length
  const first = lineBefore(text, base, newline)
  if (first?.record) return { last: first.record, end: base + newline + 1, bytes: size, torn: fragment }
  if (!first) return { last: undefined, end: 0, bytes: size, torn: base === 0 }
  // The last line is not a valid record. If no partial line follows it, this line is the torn record.
  const second = fragment ? undefined : lineBefore(text, base, first.start - 1)
  if (second?.record) return { last: second.record, end: base + first.start, bytes: size, torn: true }
  return { last: undefined, end: 0, bytes: size, torn: base === 0 && first.start === 0 && !fragment }
}

/** The line that ends at `newline`. Undefined if the line starts before the part of the file that was read. */
function lineBefore(text: Buffer, base: number, newline: number): { start: number; record?: AuditRecord } | undefined {
  if (newline < 0) return undefined
  const start = newline === 0 ? 0 : text.lastIndexOf(10, newline - 1) + 1
  if (start === 0 && base > 0) return undefined
  const parsed = parseSealedLine(text.subarray(start, newline))
  return parsed.ok ? { start, record: parsed.record } : { start }
}

export function readFirstRecord(path: string): AuditRecord | undefined {
  const { bytes } = readPart(path, maxLine, 'start')
  const parsed = parseSealedLine(bytes.subarray(0, Math.max(0, bytes.indexOf(10))))
  return parsed.ok ? parsed.record : undefined
}
