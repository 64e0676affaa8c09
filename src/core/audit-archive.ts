import { ToolwayError } from './errors.ts'

/** Fields that a filter compares with a whole value, or with a pattern that contains `*`. */
export const comparedFields = [
  'agent',
  'principal',
  'server',
  'decision',
  'reason',
  'operation',
  'code',
  'call',
  'parent',
] as const

export type ComparedField = (typeof comparedFields)[number]

/** Selects operations that meet all of these conditions. */
export interface AuditFilter extends Partial<Readonly<Record<ComparedField, string>>> {
  /** The earliest time, inclusive, in milliseconds since the epoch. */
  readonly since?: number
  /** The end of the period, exclusive, in milliseconds since the epoch. */
  readonly until?: number
  /** A tool's own name, or `server.tool`. */
  readonly tool?: string
  /** Text that occurs anywhere in the arguments, ignoring case; or `name=value` for one argument. */
  readonly text?: string
  readonly is_error?: boolean
}

/** A position in the records, which are ordered by time. The next page starts after it. */
export interface AuditCursor {
  readonly time: number
  /** The lane of a local record, or the chain of an archived record. */
  readonly chain: number
  readonly seq: number
}

/** Cursor prefixes. They show whether the search must continue in the local index or in the archive. */
const cursorPrefixes = { local: '', archive: 'pg.' } as const

export const isArchiveCursor = (text: string): boolean => text.startsWith(cursorPrefixes.archive)

export const formatCursor = ({ time, chain, seq }: AuditCursor, source: keyof typeof cursorPrefixes): string =>
  `${cursorPrefixes[source]}${time}.${chain}.${seq}`

export function parseCursor(text: string, source: keyof typeof cursorPrefixes): AuditCursor {
  const prefix = cursorPrefixes[source]
  const [time = Number.NaN, chain = Number.NaN, seq = Number.NaN] = text.slice(prefix.length).split('.').map(Number)
  if (!text.startsWith(prefix) || ![time, chain, seq].every(Number.isSafeInteger)) {
    throw new ToolwayError('INVALID_ARGUMENTS', `Invalid cursor "${text}": use the cursor from a previous page.`)
  }
  return { time, chain, seq }
}

/** How SQLite and PostgreSQL differ in search conditions. Methods that take a value bind it and return SQL. */
export interface FilterDialect {
  /** A condition that selects one record per operation. */
  readonly shown: string
  /** The column that `AuditCursor.chain` refers to. */
  readonly chain: string
  time(ms: number): string
  boolean(value: boolean): string
  integer(value: number): string
  text(value: string): string
  /** The condition that `column` matches a pattern, in which `*` stands for any text. */
  matches(column: string, pattern: string): string
  /** Selects all records whose arguments contain this text, and possibly more, so readers must check each record. */
  contains(text: string): string
}

export interface FilterConditionOptions {
  readonly filter: AuditFilter
  /** Whether to select all records instead of one per operation. */
  readonly raw: boolean
  readonly cursor?: AuditCursor | undefined
  readonly newestFirst?: boolean
}

/** The SQL conditions for a record `r`. Values are bound in the order in which they appear in the SQL. */
export function filterConditions(options: FilterConditionOptions, dialect: FilterDialect): string[] {
  const { filter, raw, cursor, newestFirst } = options
  const compared = (column: string, wanted: string): string => {
    if (wanted === '') return `coalesce(${column}, '') = ''`
    return wanted.includes('*') ? dialect.matches(column, wanted) : `${column} = ${dialect.text(wanted)}`
  }
  const conditions: string[] = raw ? [] : [dialect.shown]
  if (filter.since !== undefined) conditions.push(`r.time >= ${dialect.time(filter.since)}`)
  if (filter.until !== undefined) conditions.push(`r.time < ${dialect.time(filter.until)}`)
  if (filter.is_error !== undefined) conditions.push(`r.is_error = ${dialect.boolean(filter.is_error)}`)
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined) conditions.push(compared(`r.${field}`, wanted))
  }
  if (filter.tool === '') conditions.push(compared('r.tool', ''))
  else if (filter.tool !== undefined) {
    const [own, full] = ['r.tool', "(r.server || '.' || r.tool)"].map((column) => compared(column, filter.tool ?? ''))
    conditions.push(`(${own} OR ${full})`)
  }
  if (filter.text !== undefined) conditions.push(dialect.contains(filter.text))
  if (cursor) {
    const after = [dialect.time(cursor.time), dialect.integer(cursor.chain), dialect.integer(cursor.seq)]
    conditions.push(`(r.time, ${dialect.chain}, r.seq) ${newestFirst ? '<' : '>'} (${after.join(', ')})`)
  }
  return conditions
}

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
