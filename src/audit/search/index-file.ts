import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { AuditEnd } from '../../core/audit.ts'
import { type AuditFilter, comparedFields } from '../../core/audit-archive.ts'
import { setBounded } from '../../lib/memoize.ts'
import { inTransaction, openDatabase, userVersion } from '../../lib/sqlite.ts'
import { matches } from '../../lib/wildcard.ts'
import type { StoredRecord } from '../log-files.ts'
import type { AuditRecord, BeforeRecord, GapRecord } from '../record.ts'

/** The index file. The index is derived from the segments and can always be rebuilt. */
export const indexFile = (folder: string): string => join(folder, 'index.sqlite')

/** Max time to wait for another process that is updating the index. One batch takes a fraction of a second. */
const busyMs = 30_000

/** Opens the index. Creates it if it is missing or damaged. */
export function openIndex(folder: string): DatabaseSync {
  const path = indexFile(folder)
  if (!mayWrite(path)) return prepared(':memory:')
  try {
    return prepared(path)
  } catch (error) {
    if (!isIndexDamaged(error)) throw error
    removeIndex(folder)
    return prepared(path)
  }
}

/** Removes the index files. Processes that have them open continue with their copy. */
export function removeIndex(folder: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(indexFile(folder) + end, { force: true })
}

export const emptyIndex = (database: DatabaseSync): void => inTransaction(database, () => recreateTables(database))

export function isIndexDamaged(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode
  return typeof code === 'number' && [sqliteCorrupt, sqliteNotADatabase].includes(code & 0xff)
}

const sqliteCorrupt = 11
const sqliteNotADatabase = 26

/** Whether the index can be written; creates the file if necessary. A read-only log gets an index in memory. */
function mayWrite(path: string): boolean {
  try {
    closeSync(openSync(path, 'a', 0o600))
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return false
    throw error
  }
}

const prepared = (path: string): DatabaseSync =>
  openDatabase(path, busyMs, (database) => {
    // Do not wait for the disk when committing, because the index can be rebuilt.
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536',
    )
    if (userVersion(database) !== indexVersion) {
      inTransaction(database, () => {
        // Check again: another process may have created the tables in the meantime.
        if (userVersion(database) !== indexVersion) recreateTables(database)
      })
    }
    database.function('wildcard', { deterministic: true }, (pattern, text) =>
      text !== null && matches(String(pattern), String(text)) ? 1 : 0,
    )
  })

/** The schema version. Increment it with every change to the tables or their contents, so that indexes are rebuilt. */
const indexVersion = 1

/**
 * `records` holds only the columns that are searched; the rest is read from the segments, at `file`, `at` and `bytes`.
 * `shown` marks the record that represents an operation: its end, or its beginning while there is no end. `begin`
 * refers from an end to its beginning.
 */
const tables = `
  CREATE TABLE lanes (
    lane INTEGER PRIMARY KEY, file INTEGER NOT NULL, at INTEGER NOT NULL,
    last INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE records (
    id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, seq INTEGER NOT NULL,
    file INTEGER NOT NULL, at INTEGER NOT NULL, bytes INTEGER NOT NULL,
    time INTEGER NOT NULL, phase TEXT, shown INTEGER NOT NULL, begin INTEGER,
    operation TEXT NOT NULL, call TEXT, parent TEXT, agent TEXT, principal TEXT, server TEXT, tool TEXT,
    decision TEXT, reason TEXT, code TEXT, is_error INTEGER NOT NULL, latency_ms REAL
  ) STRICT;
  CREATE UNIQUE INDEX records_place ON records (lane, seq);
  CREATE INDEX records_time ON records (time, lane, seq);
  CREATE INDEX records_call ON records (call) WHERE call IS NOT NULL;
  CREATE INDEX records_agent ON records (agent, time) WHERE shown = 1;
  CREATE INDEX records_tool ON records (server, tool, time) WHERE shown = 1;
  CREATE INDEX records_refused ON records (decision, time) WHERE shown = 1 AND decision <> 'ALLOW';
`

/** The full-text index: trigrams of the arguments, without a copy of the arguments themselves. */
const words = `
  CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
  )
`

function recreateTables(database: DatabaseSync): void {
  // Drop virtual tables first: dropping one also drops its shadow tables.
  for (const which of ["sql LIKE 'CREATE VIRTUAL%'", "name NOT LIKE 'sqlite_%'"]) {
    const found = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND ${which}`).all()
    for (const { name } of found) database.exec(`DROP TABLE "${name}"`)
  }
  database.exec(tables)
  try {
    database.exec(words)
  } catch (error) {
    // If SQLite lacks full-text search, text is searched for in the segments.
    if (!/no such module/.test((error as Error).message)) throw error
  }
  database.exec(`PRAGMA user_version = ${indexVersion}`)
}

export const hasWords = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'words'").get() !== undefined

/** One operation: how it ended, and the arguments with which it began. */
export interface OperationRow extends Partial<Omit<AuditEnd, 'operation' | 'code'>> {
  /** When the operation ended, or when it began if no end is recorded. */
  readonly time: string
  readonly lane: string
  readonly seq: number
  readonly operation: string
  readonly arguments?: unknown
  /** Whether an end is recorded. If not, the operation is still running, or its process was killed. */
  readonly ended: boolean
  readonly code?: string
}

/** The row for a record. If `record` ends an operation, `before` is the record of the operation's beginning. */
export function rowOf(lane: string, record: AuditRecord, before?: BeforeRecord): OperationRow {
  if (record.phase === undefined) {
    const { time, seq, operation } = record
    const row = { time, lane, seq, operation, reason: 'reason' in record ? record.reason : undefined, ended: true }
    return isGap(record) ? { ...row, detail: extentOf(record) } : row
  }
  const { phase, prev: _, hash: __, time, ...fields } = record
  const row = { time, ...fields, lane, ended: phase === 'after' }
  return phase === 'after' ? { ...row, arguments: before?.arguments } : row
}

/** Whether a record is listed. Operations are, and so are gaps, because readers must see that records are missing. */
export const isListed = (record: AuditRecord): boolean => record.phase !== undefined || isGap(record)

export const isGap = (record: AuditRecord): record is GapRecord => record.operation === 'gap' && !record.phase

/** How many records are missing: `from: 5, to: 9` or `refused: 2, writes: 1`. A record that was changed may have anything. */
const extentOf = ({ missing, unrecorded }: GapRecord): string =>
  Object.entries({ ...missing, ...unrecorded })
    .flatMap(([what, count]) => (typeof count === 'number' && count > 0 ? [`${what}: ${count}`] : []))
    .join(', ')

/** Whether a row matches a filter. This defines the meaning of filters; the index must agree with it. */
export function matchesFilter(row: OperationRow, filter: AuditFilter): boolean {
  const time = Date.parse(row.time)
  if (filter.since !== undefined && !(time >= filter.since)) return false
  if (filter.until !== undefined && !(time < filter.until)) return false
  if (filter.is_error !== undefined && (row.is_error === true) !== filter.is_error) return false
  for (const field of comparedFields) {
    const wanted = filter[field]
    if (wanted !== undefined && !fits(wanted, row[field])) return false
  }
  if (filter.tool !== undefined && !isTool(row, filter.tool)) return false
  return filter.text === undefined || searchableText(row.arguments).includes(filter.text.toLowerCase())
}

/** Whether a value matches. A missing value matches only the empty string; `*` matches any value. */
const fits = (wanted: string, value: string | undefined): boolean =>
  value === undefined ? wanted === '' : matches(wanted, value)

const isTool = ({ server, tool }: OperationRow, wanted: string): boolean =>
  fits(wanted, tool) || (server !== undefined && tool !== undefined && fits(wanted, `${server}.${tool}`))

/** The arguments as text for searching: one `name=value` line for each value. */
export function searchableText(given: unknown): string {
  const lines: string[] = []
  const add = (value: unknown, name: string, depth: number): void => {
    if (typeof value !== 'object' || value === null) lines.push(name === '' ? String(value) : `${name}=${value}`)
    else if (depth < maxDepth) {
      for (const [key, member] of Object.entries(value)) add(member, Array.isArray(value) ? name : key, depth + 1)
    }
  }
  if (given !== undefined) add(given, '', 0)
  return lines.join('\n').toLowerCase()
}

/** Max depth. Redaction cuts anything deeper. */
const maxDepth = 64

/** Max operations waiting for their end. Beyond that, the oldest are dropped, because they never ended. */
const maxOpen = 10_000

export function createRecordPairing() {
  const begun = new Map<string, { readonly lane: string; readonly record: BeforeRecord }>()
  return {
    /** Adds a record. Returns the operation that this record completes; undefined for a beginning. */
    add({ lane, record }: Pick<StoredRecord, 'lane' | 'record'>): OperationRow | undefined {
      if (record.phase === undefined) return isGap(record) ? rowOf(lane, record) : undefined
      const key = `${lane} ${record.call}`
      if (record.phase === 'after') {
        const before = begun.get(key)
        begun.delete(key)
        return rowOf(lane, record, before?.record)
      }
      setBounded(begun, key, { lane, record }, maxOpen)
      return undefined
    },
    open: (): OperationRow[] => [...begun.values()].map(({ lane, record }) => rowOf(lane, record)),
  }
}
