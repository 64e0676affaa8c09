import { hash as digest } from 'node:crypto'
import type { AuditBegin, AuditEnd } from '../core/audit.ts'
import { archiveNames } from '../core/audit-archive.ts'
import { canonical } from '../lib/canonical-json.ts'

/** What every record has, whatever it is about. */
export interface ChainedRecord {
  /** ISO 8601, UTC, milliseconds. */
  readonly time: string
  /** Counts the records of one lane from 1 on. */
  readonly seq: number
  /** The hash of the record before; zeros for the first of a lane. */
  readonly prev: string
  readonly hash: string
}

/** An operation begins. `arguments` are as the redactor left them, `"dropped"` where it failed, or a `Truncated`. */
export interface BeforeRecord extends ChainedRecord, Omit<AuditBegin, 'arguments'> {
  readonly phase: 'before'
  readonly arguments?: unknown
}

/** An operation is over. */
export interface AfterRecord extends ChainedRecord, AuditEnd {
  readonly phase: 'after'
}

/** Stands for arguments that are too long to be written down. */
export interface TruncatedArguments {
  readonly truncated: true
  readonly bytes: number
  /** Of the whole, as it would have been written. */
  readonly sha256: string
  readonly start: string
}

/** What the log says about itself has no `phase`, and is signed. */
interface ControlRecordBase extends ChainedRecord {
  readonly phase?: undefined
  readonly lane: string
  /** Which key signed it: the start of the SHA-256 of the public key. */
  readonly key: string
  /** Ed25519 over the canonical JSON of the record without `signature` and `hash`, in base64url. */
  readonly signature: string
}

/** The first record of each file. */
export interface SegmentRecord extends ControlRecordBase {
  readonly operation: 'segment'
  readonly reason: 'first' | 'size' | 'age' | 'abandoned'
  /** How long the file before is, as far as it counts; none for the first file of a lane. */
  readonly previous?: { readonly file: string; readonly bytes: number }
}

/** A process has taken the lane. */
export interface StartRecord extends ControlRecordBase {
  readonly operation: 'start'
  readonly pid: number
  readonly host: string
  readonly version: string
  /** The lanes there are, so that one which vanishes is missed. */
  readonly lanes: readonly string[]
  /** How many bytes of a torn record were cut off. */
  readonly torn?: number
  /**
   * How many records the process before, which was killed, left behind that neither a signature nor `head` vouches for:
   * no more than a second of reads, if they are genuine.
   */
  readonly unproven?: number
}

/** Everything before it is as it was written. */
export interface CheckpointRecord extends ControlRecordBase {
  readonly operation: 'checkpoint'
  /** The process has left the lane: nothing follows but the start of another. */
  readonly final?: true
}

/** What went unrecorded while nothing could be written, by what became of it. */
export interface Unrecorded {
  /** Operations that were refused because they could not be recorded. */
  readonly refused: number
  /** Records of reads, each of which went on all the same; of denials; of the ends of writes that have run. */
  readonly reads: number
  readonly denials: number
  readonly writes: number
  /** Records that were written and that the disk may have lost: their sync failed. */
  readonly unsynced: number
}

/** Something is not in the log that should be. */
export interface GapRecord extends ControlRecordBase {
  readonly operation: 'gap'
  /** `unrecorded` is honest; everything else means that somebody or something has been at the files. */
  readonly reason: 'unrecorded' | 'records_missing' | 'records_changed' | 'damaged' | 'head_missing' | 'head_invalid'
  readonly error?: string
  readonly since?: string
  readonly unrecorded?: Unrecorded
  readonly missing?: { readonly from: number; readonly to: number }
}

/** Records up to and including `to` are about to be removed, because they are as old as the configuration wants. */
export interface RetentionRecord extends ControlRecordBase {
  readonly operation: 'retention'
  readonly removed: { readonly from: number; readonly to: number }
}

export type EventRecord = BeforeRecord | AfterRecord
export type ControlRecord = SegmentRecord | StartRecord | CheckpointRecord | GapRecord | RetentionRecord
export type AuditRecord = EventRecord | ControlRecord

/** Whether a record is about an operation, and not about the log itself. */
export const isEvent = (record: AuditRecord): record is EventRecord => record.phase !== undefined

/** The `prev` of the first record of a lane. */
export const zeroHash = '0'.repeat(64)

/**
 * The record in a line; none if it has not the form of one. Somebody may have written anything into a line, and must
 * not get any further with it than this: whoever reads the log goes on with the next one.
 */
export function parseRecord(text: string): AuditRecord | undefined {
  try {
    const value = JSON.parse(text) as Readonly<Record<string, unknown>>
    return hasForm(value) ? (value as unknown as AuditRecord) : undefined
  } catch {
    return undefined
  }
}

const hasForm = (value: Readonly<Record<string, unknown>>): boolean =>
  Number.isSafeInteger(value.seq) &&
  [value.time, value.prev, value.hash, value.operation].every(isText) &&
  archiveNames.every((name) => value[name] === undefined || isText(value[name])) &&
  (value.phase === undefined || ((value.phase === 'before' || value.phase === 'after') && isText(value.call)))

const isText = (value: unknown): boolean => typeof value === 'string'

/**
 * A record on disk is one line. Its members stand in canonical order (RFC 8785), except that `hash` is the last one:
 *
 *     {"agent":"dev",…,"prev":"<64 hex>","seq":7,…,"write":false,"hash":"<64 hex>"}⏎
 *
 * `hash` is the SHA-256, in lower-case hex, of the UTF-8 bytes of the line up to, but without, `,"hash":"`, followed
 * by one `}`: that is the canonical JSON of the record without `hash`. Since `prev` is part of it, each hash stands
 * for all records of the lane up to there.
 */
const marker = ',"hash":"'
const tailBytes = marker.length + zeroHash.length + 2

/** A record's text as it is stored, and its hash. `body` is its canonical JSON without `hash`. */
export function sealLine(body: string): { readonly line: string; readonly hash: string } {
  const hash = digest('sha256', body)
  return { line: `${body.slice(0, -1)}${marker}${hash}"}\n`, hash }
}

type ParsedLine =
  | { readonly ok: true; readonly record: AuditRecord }
  /** `record` where the line could be read all the same. */
  | { readonly ok: false; readonly wrong: 'form' | 'hash' | 'canonical'; readonly record?: AuditRecord }

/** Checks one line, newline excluded, as far as it can be checked alone. */
export function parseSealedLine(bytes: Buffer): ParsedLine {
  const record = parseRecord(bytes.toString('utf8'))
  const written = record && writtenOf(record)
  if (!record || !written) return { ok: false, wrong: 'form' }
  const end = bytes.length - tailBytes
  const stored = bytes.toString('latin1', end)
  if (end < 1 || stored !== `${marker}${record.hash}"}`) return { ok: false, wrong: 'form', record }
  const body = Buffer.concat([bytes.subarray(0, end), closing])
  if (digest('sha256', body) !== record.hash) return { ok: false, wrong: 'hash', record }
  if (!written.equals(body)) return { ok: false, wrong: 'canonical', record }
  return { ok: true, record }
}

const closing = Buffer.from('}')

/** The canonical JSON of a record without its hash; none where it nests too deeply for one of ours. */
function writtenOf({ hash: _, ...record }: AuditRecord): Buffer | undefined {
  try {
    return Buffer.from(canonical(record))
  } catch {
    return undefined
  }
}
