import { type AuditFilter, comparedFields } from './audit-filter.ts'

/** An audit record as the archive stores it: the original line, and the fields that searches use. */
export interface ArchiveRecord {
  readonly seq: number
  readonly hash: string
  readonly prev: string
  /** Milliseconds since the epoch. */
  readonly time: number
  /** The record as written, without its newline. The hash is computed over this text. */
  readonly line: string
  /** Null for signed control records. */
  readonly phase: 'before' | 'after' | null
  /** Whether this is a gap record. Gap records are listed among the operations, but belong to none. */
  readonly gap: boolean
  readonly is_error: boolean
  readonly names: Readonly<Partial<Record<ArchiveName, string>>>
  /** The arguments as searchable text; empty if there are none. */
  readonly words: string
}

export const archiveNames = [...comparedFields, 'tool'] as const

export type ArchiveName = (typeof archiveNames)[number]

export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

export interface Spool {
  /** Identifies this log among the logs of all replicas. The id is stored in the log folder and never changes. */
  readonly replica: string
  /** The public keys that verify this log's signatures, in PEM form. */
  publicKeys(): string
  /** For each lane, the last record on disk. Copy no later records: they can still be lost in a crash. */
  lanes(): ReadonlyMap<string, ChainEnd>
  /** Reads up to `most` of a lane's records from disk, in order, starting after record number `after`. */
  read(lane: string, after: number, most: number): Promise<readonly ArchiveRecord[]>
}

/** Consecutive records from one lane of a replica. Records that do not continue a chain start a new one. */
export interface ArchiveChain extends ChainEnd {
  readonly id: number
  readonly replica: string
  readonly host: string
  readonly lane: string
  /** How many chains this lane had before this one. */
  readonly epoch: number
  /** The number of the last record that retention removed. */
  readonly removedTo: number
}

export interface ArchiveQuery extends AuditFilter {
  readonly before?: string
  readonly order?: 'newest' | 'oldest'
  readonly limit: number
  /** Whether to return all records instead of one per operation. */
  readonly raw?: boolean
}

/** A record and, if it ends an operation, the record that began it. */
export interface ArchiveHit {
  readonly replica: string
  readonly host: string
  readonly lane: string
  readonly line: string
  readonly begin: string | null
}

export interface ArchivePage {
  readonly hits: readonly ArchiveHit[]
  readonly next: string | null
}

/** A query for records in order of arrival, which is the only order that covers all replicas. */
export interface ArrivalQuery extends Omit<ArchiveQuery, 'before' | 'order'> {
  readonly after?: number
  /** Whether to return the first or the last matches. Either way, they are returned in order of arrival. */
  readonly which: 'first' | 'last'
}

export interface ArchiveArrival extends ArchiveHit {
  readonly position: number
}

export interface ArchivedRecord extends Pick<ArchiveRecord, 'line' | 'time' | 'is_error' | 'words'> {
  readonly names: Readonly<Record<ArchiveName, string | null>>
  /** Whether this record represents its operation in listings. */
  readonly shown: boolean
}

export interface Archive {
  search(query: ArchiveQuery): Promise<ArchivePage>
  arrivals(query: ArrivalQuery): Promise<readonly ArchiveArrival[]>
  chains(): Promise<readonly ArchiveChain[]>
  records(chain: number): AsyncIterable<readonly ArchivedRecord[]>
  /** Copies of the signed checkpoints, stored apart from the records. */
  checkpoints(chain: number): Promise<readonly string[]>
  publicKeys(): Promise<string>
}
