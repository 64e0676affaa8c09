import type { AuditFilter } from './audit-filter.ts'

/** A record of the audit log as an archive keeps it: its line as it was written, and what it is found by. */
export interface ArchiveRecord {
  readonly seq: number
  readonly hash: string
  readonly prev: string
  /** Milliseconds since the epoch. */
  readonly time: number
  /** The line, without its newline: what the hash is made of. */
  readonly line: string
  /** Null for what the log says about itself, which is signed. */
  readonly phase: 'before' | 'after' | null
  /** It stands for itself where operations are listed. */
  readonly gap: boolean
  readonly is_error: boolean
  /** Names by which it is found. */
  readonly names: Readonly<Partial<Record<ArchiveName, string>>>
  /** Its arguments as people search them; empty for none. */
  readonly words: string
}

export const archiveNames = [
  'operation',
  'call',
  'parent',
  'agent',
  'principal',
  'server',
  'tool',
  'decision',
  'reason',
  'code',
] as const

export type ArchiveName = (typeof archiveNames)[number]

/** The end of a chain. */
export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

/** The audit log of this replica, as far as whoever copies it must know it. */
export interface Spool {
  /** Names this log among those of all replicas, and stays with its folder. */
  readonly replica: string
  /** The keys that its signatures are checked with, in PEM form. */
  publicKeys(): string
  /** Its lanes, and up to where each is on disk: only that may be copied, since nothing else is sure to stay. */
  lanes(): ReadonlyMap<string, ChainEnd>
  /** Records of a lane after a number, in their order, as far as they are on disk. */
  read(lane: string, after: number, most: number): Promise<readonly ArchiveRecord[]>
}

/** One chain in the archive: a lane of a replica, for as long as it continued what was there of it. */
export interface ArchiveChain extends ChainEnd {
  readonly id: number
  readonly replica: string
  /** The machine of the replica. */
  readonly host: string
  readonly lane: string
  /** Counts how often the lane of the replica began anew. */
  readonly epoch: number
  /** Up to here records were removed because of their age. */
  readonly removedTo: number
}

/** A search in the archive. */
export interface ArchiveQuery extends AuditFilter {
  readonly before?: string
  readonly order?: 'newest' | 'oldest'
  readonly limit: number
  /** All records, not one for each operation. */
  readonly raw?: boolean
}

/** What was found: a record, and the beginning of its operation where it is an end. */
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

/** What is wanted of the records in the one order over all replicas, which is that of their arrival. */
export interface ArrivalQuery extends AuditFilter {
  /** Only those that arrived after this one. */
  readonly after?: number
  /** The first of them, or the last; told in their order either way. */
  readonly which: 'first' | 'last'
  readonly limit: number
  /** All records, not one for each operation. */
  readonly raw?: boolean
}

export interface ArchiveArrival extends ArchiveHit {
  /** Its place in that order. */
  readonly position: number
}

/** A line in the archive, and what it is found by there. */
export interface ArchivedRecord extends Pick<ArchiveRecord, 'line' | 'time' | 'is_error' | 'words'> {
  readonly names: Readonly<Record<ArchiveName, string | null>>
  /** It stands for its operation where operations are listed. */
  readonly shown: boolean
}

/** What can be asked of the records of all replicas. */
export interface Archive {
  search(query: ArchiveQuery): Promise<ArchivePage>
  arrivals(query: ArrivalQuery): Promise<readonly ArchiveArrival[]>
  chains(): Promise<readonly ArchiveChain[]>
  /** The records of a chain in their order, in lists as they come. */
  records(chain: number): AsyncIterable<readonly ArchivedRecord[]>
  /** Copies of what was signed, kept apart from the records. */
  checkpoints(chain: number): Promise<readonly string[]>
  /** The public keys of the replicas, as they gave them. */
  publicKeys(): Promise<string>
}
