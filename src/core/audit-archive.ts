import { type AuditFilter, comparedFields } from './audit-filter.ts'

/** An audit record as the archive stores it: the original line, and the fields to find it by. */
export interface ArchiveRecord {
  readonly seq: number
  readonly hash: string
  readonly prev: string
  /** Milliseconds since the epoch. */
  readonly time: number
  /** Without its newline: the input of the hash. */
  readonly line: string
  /** Null for signed control records. */
  readonly phase: 'before' | 'after' | null
  /** A gap record; listed among operations although it belongs to none. */
  readonly gap: boolean
  readonly is_error: boolean
  readonly names: Readonly<Partial<Record<ArchiveName, string>>>
  /** Searchable text of the arguments; empty for none. */
  readonly words: string
}

export const archiveNames = [...comparedFields, 'tool'] as const

export type ArchiveName = (typeof archiveNames)[number]

export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

export interface Spool {
  /** Identifies this log among all replicas; stays with its folder. */
  readonly replica: string
  /** In PEM form. */
  publicKeys(): string
  /** The end of each lane on disk. Only records up to there may be copied: later ones may still be lost in a crash. */
  lanes(): ReadonlyMap<string, ChainEnd>
  /** In order, as far as they are on disk. */
  read(lane: string, after: number, most: number): Promise<readonly ArchiveRecord[]>
}

/** One chain in the archive: a lane of a replica, up to where it no longer continues what the archive has. */
export interface ArchiveChain extends ChainEnd {
  readonly id: number
  readonly replica: string
  readonly host: string
  readonly lane: string
  /** How often this lane started over. */
  readonly epoch: number
  /** Retention removed records up to this number. */
  readonly removedTo: number
}

export interface ArchiveQuery extends AuditFilter {
  readonly before?: string
  readonly order?: 'newest' | 'oldest'
  readonly limit: number
  /** All records instead of one per operation. */
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

/** A query in order of arrival, the only order across all replicas. */
export interface ArrivalQuery extends Omit<ArchiveQuery, 'before' | 'order'> {
  readonly after?: number
  /** The first or the last matches; returned in order of arrival either way. */
  readonly which: 'first' | 'last'
}

export interface ArchiveArrival extends ArchiveHit {
  readonly position: number
}

export interface ArchivedRecord extends Pick<ArchiveRecord, 'line' | 'time' | 'is_error' | 'words'> {
  readonly names: Readonly<Record<ArchiveName, string | null>>
  /** Represents its operation in listings. */
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
