import type { AuditBegin, AuditEnd } from '../../core/audit.ts'

/** What every record has, whatever it is about. */
export interface Link {
  /** ISO 8601, UTC, milliseconds. */
  readonly time: string
  /** Counts the records of one lane from 1 on. */
  readonly seq: number
  /** The hash of the record before; zeros for the first of a lane. */
  readonly prev: string
  readonly hash: string
}

/** An operation begins. `arguments` are as the redactor left them, `"dropped"` where it failed, or a `Truncated`. */
export interface BeforeRecord extends Link, Omit<AuditBegin, 'arguments'> {
  readonly phase: 'before'
  readonly arguments?: unknown
}

/** An operation is over. */
export interface AfterRecord extends Link, AuditEnd {
  readonly phase: 'after'
}

/** Stands for arguments that are too long to be written down. */
export interface Truncated {
  readonly truncated: true
  readonly bytes: number
  /** Of the whole, as it would have been written. */
  readonly sha256: string
  readonly start: string
}

/** What the log says about itself has no `phase`, and is signed. */
interface Own extends Link {
  readonly phase?: undefined
  readonly lane: string
  /** Which key signed it: the start of the SHA-256 of the public key. */
  readonly key: string
  /** Ed25519 over the canonical JSON of the record without `signature` and `hash`, in base64url. */
  readonly signature: string
}

/** The first record of each file. */
export interface SegmentRecord extends Own {
  readonly operation: 'segment'
  readonly reason: 'first' | 'size' | 'age' | 'abandoned'
  /** How long the file before is, as far as it counts; none for the first file of a lane. */
  readonly previous?: { readonly file: string; readonly bytes: number }
}

/** A process has taken the lane. */
export interface StartRecord extends Own {
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
export interface CheckpointRecord extends Own {
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
export interface GapRecord extends Own {
  readonly operation: 'gap'
  /** `unrecorded` is honest; everything else means that somebody or something has been at the files. */
  readonly reason: 'unrecorded' | 'records_missing' | 'records_changed' | 'damaged' | 'head_missing' | 'head_invalid'
  readonly error?: string
  readonly since?: string
  readonly unrecorded?: Unrecorded
  readonly missing?: { readonly from: number; readonly to: number }
}

/** Records up to and including `to` are about to be removed, because they are as old as the configuration wants. */
export interface RetentionRecord extends Own {
  readonly operation: 'retention'
  readonly removed: { readonly from: number; readonly to: number }
}

export type EventRecord = BeforeRecord | AfterRecord
export type OwnRecord = SegmentRecord | StartRecord | CheckpointRecord | GapRecord | RetentionRecord
export type AuditRecord = EventRecord | OwnRecord

/** Whether a record is about an operation, and not about the log itself. */
export const isEvent = (record: AuditRecord): record is EventRecord => record.phase !== undefined

/** The `prev` of the first record of a lane. */
export const noHash = '0'.repeat(64)
